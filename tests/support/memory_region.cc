// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tests/support/memory_region.h"

#include <cstdint>
#include <cstring>
#include <iterator>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

namespace ztcp::test {
namespace {

std::size_t page_bytes() { return static_cast<std::size_t>(sysconf(_SC_PAGESIZE)); }

}  // namespace

Result<std::shared_ptr<MemoryRegion>> MemoryRegion::make(const Region& region) {
  std::shared_ptr<MemoryRegion> made(new MemoryRegion(region));
  if (region.kind == MemoryKind::kHost) {
    if (region.dmabuf_fd >= 0) return fail(Errc::kInvalidArgument, "DMA-BUF of host memory");
    return made;
  }
  if (region.dmabuf_fd < 0) {
    if (reinterpret_cast<std::uintptr_t>(region.address) % page_bytes() != 0)
      return fail(Errc::kInvalidArgument, "GPU memory that begins inside a page");
    return made;
  }
  struct stat file {};
  if (fstat(region.dmabuf_fd, &file) != 0) return fail_errno("fstat of the DMA-BUF");
  const auto file_bytes = static_cast<std::uint64_t>(file.st_size);
  if (region.offset > file_bytes || region.size_bytes > file_bytes - region.offset)
    return fail(Errc::kInvalidArgument, "DMA-BUF that ends before the region");
  const std::uint64_t inside = region.offset % page_bytes();
  made->mapping_bytes_ = region.size_bytes + inside;
  made->mapping_ = mmap(nullptr, made->mapping_bytes_, PROT_READ | PROT_WRITE, MAP_SHARED,
                        region.dmabuf_fd, static_cast<off_t>(region.offset - inside));
  if (made->mapping_ == MAP_FAILED) {
    made->mapping_ = nullptr;
    return fail_errno("mmap of the DMA-BUF");
  }
  made->mapped_ = static_cast<std::byte*>(made->mapping_) + inside;
  return made;
}

MemoryRegion::~MemoryRegion() {
  if (mapping_ != nullptr) munmap(mapping_, mapping_bytes_);
}

bool MemoryRegion::covers(std::span<const std::byte> bytes) const {
  const auto begin = reinterpret_cast<std::uintptr_t>(region_.address);
  const auto at = reinterpret_cast<std::uintptr_t>(bytes.data());
  return at >= begin && at - begin <= region_.size_bytes &&
         bytes.size() <= region_.size_bytes - (at - begin);
}

template <class Copy>
void MemoryRegion::reach(const std::byte* at, Copy&& copy) const {
  auto* const begin = static_cast<std::byte*>(region_.address);
  if (mapped_ != nullptr || !is_gpu()) return copy((is_gpu() ? mapped_ : begin) + (at - begin));
  mprotect(begin, region_.size_bytes, PROT_READ | PROT_WRITE);
  copy(begin + (at - begin));
  mprotect(begin, region_.size_bytes, PROT_NONE);
}

std::vector<std::byte> MemoryRegion::read(std::span<const std::byte> bytes) const {
  std::vector<std::byte> copy;
  if (!bytes.empty())
    reach(bytes.data(), [&](std::byte* from) { copy.assign(from, from + bytes.size()); });
  return copy;
}

void MemoryRegion::receive(std::byte* to, std::span<const std::byte> bytes) {
  if (bytes.empty()) return;
  Arrival arrival{to, {bytes.begin(), bytes.end()}};
  if (is_gpu())
    arrivals_.push_back(std::move(arrival));
  else
    write(arrival);
}

std::vector<MemoryRegion::Arrival> MemoryRegion::take_arrivals(std::span<const std::byte> bytes) {
  std::vector<Arrival> taken;
  std::vector<Arrival> kept;
  for (Arrival& arrival : arrivals_) {
    const bool is_inside = arrival.to >= bytes.data() && arrival.to < bytes.data() + bytes.size();
    (is_inside ? taken : kept).push_back(std::move(arrival));
  }
  arrivals_ = std::move(kept);
  return taken;
}

void MemoryRegion::write(const Arrival& arrival) const {
  reach(arrival.to,
        [&](std::byte* to) { std::memcpy(to, arrival.bytes.data(), arrival.bytes.size()); });
}

}  // namespace ztcp::test
