// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/shm_region.h"

#include <bit>
#include <cerrno>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "core/file_size_signal.h"
#include "core/process_mark.h"

namespace ztcp::link {
namespace {

constexpr int kSeals = F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL;
constexpr std::size_t kPageBytes = 4096;
constexpr std::size_t kWayBytes = (sizeof(ShmWay) + kPageBytes - 1) / kPageBytes * kPageBytes;

std::size_t slots_bytes(const ShmShape& shape) {
  const std::size_t bytes = std::size_t{shape.slot_count} * shape.slot_bytes;
  return (bytes + kPageBytes - 1) / kPageBytes * kPageBytes;
}

// Way 0 is that of the server's frames.
ShmPlace place(const ShmShape& shape, void* memory, bool of_server) {
  auto* base = static_cast<std::byte*>(memory);
  const std::size_t nth = of_server ? 0 : 1;
  // New shared memory is zeros, the initial state of a way.
  return {.way = reinterpret_cast<ShmWay*>(base + nth * kWayBytes),
          .slots = base + 2 * kWayBytes + nth * slots_bytes(shape),
          .slot_count = shape.slot_count,
          .slot_bytes = shape.slot_bytes};
}

}  // namespace

bool ShmShape::is_possible() const {
  return std::has_single_bit(slot_count) && slot_count <= kMaxShmSlots && slot_bytes >= 128 &&
         slot_bytes % 64 == 0 && slot_bytes <= 1U << 17;
}

std::size_t ShmShape::bytes() const { return 2 * (kWayBytes + slots_bytes(*this)); }

void ShmRegion::Unmap::operator()(void* memory) const {
  if (!in_forked_child()) ::munmap(memory, bytes);
}

ShmRegion::ShmRegion(const ShmShape& shape, Memory memory, bool server)
    : memory_(std::move(memory)),
      sender_(place(shape, memory_.get(), server)),
      receiver_(place(shape, memory_.get(), !server)) {}

Result<std::unique_ptr<ShmRegion>> ShmRegion::make(const ShmShape& shape, Fd& fd) {
  Fd made(::memfd_create("ztcp-link", MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!made) return fail_errno("memfd_create");
  // This may be a thread of NCCL's.
  FileSizeSignal signal;
  if (::ftruncate(made.get(), static_cast<off_t>(shape.bytes())) != 0) {
    if (errno == EFBIG) signal.raised();
    return fail_errno("ftruncate");
  }
  if (::fcntl(made.get(), F_ADD_SEALS, kSeals) != 0) return fail_errno("F_ADD_SEALS");
  auto region = map(shape, made, true);
  if (region) fd = std::move(made);
  return region;
}

Result<std::unique_ptr<ShmRegion>> ShmRegion::map(const ShmShape& shape, const Fd& fd) {
  struct stat file {};
  const int seals = ::fcntl(fd.get(), F_GET_SEALS);
  if (!shape.is_possible() || ::fstat(fd.get(), &file) != 0 ||
      file.st_size != static_cast<off_t>(shape.bytes()) || seals < 0 ||
      (seals & F_SEAL_SHRINK) == 0)
    return fail(Errc::kProtocol, "shared memory of a link");
  return map(shape, fd, false);
}

Result<std::unique_ptr<ShmRegion>> ShmRegion::map(const ShmShape& shape, const Fd& fd,
                                                  bool server) {
  void* memory = ::mmap(nullptr, shape.bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd.get(), 0);
  if (memory == MAP_FAILED) return fail_errno("mmap");
  Memory mapped(memory, Unmap{shape.bytes()});
  ::madvise(memory, shape.bytes(), MADV_DONTFORK);
  return std::unique_ptr<ShmRegion>(new ShmRegion(shape, std::move(mapped), server));
}

}  // namespace ztcp::link
