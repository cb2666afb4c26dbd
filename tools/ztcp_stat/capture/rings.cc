// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/capture/rings.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>

namespace ztcp::capture {
namespace {

// Without the seal, this program would end with SIGBUS if the memory shrank.
bool has_fixed_size(int fd, std::size_t bytes) {
  struct stat file {};
  const int seals = fcntl(fd, F_GET_SEALS);
  return seals >= 0 && (seals & F_SEAL_SHRINK) != 0 && fstat(fd, &file) == 0 &&
         static_cast<std::size_t>(file.st_size) == bytes;
}

Result<std::span<std::byte>> map_shared(int fd, std::size_t bytes, int protection) {
  if (!has_fixed_size(fd, bytes)) return fail(Errc::kProtocol, "memory of the capture");
  void* const memory = mmap(nullptr, bytes, protection, MAP_SHARED, fd, 0);
  if (memory == MAP_FAILED) return fail_errno("mmap");
  return std::span(static_cast<std::byte*>(memory), bytes);
}

}  // namespace

Result<std::unique_ptr<Rings>> Rings::map(const StartedCapture& capture) {
  const std::size_t lanes = capture.facts.lanes;
  const auto rings = ZTCP_TRY(map_shared(
      capture.rings.get(), stats::capture_bytes(lanes, capture.facts.ring_bytes), PROT_READ));
  const auto cursors = map_shared(capture.cursors.get(), lanes * sizeof(stats::CaptureCursor),
                                  PROT_READ | PROT_WRITE);
  if (!cursors) {
    munmap(rings.data(), rings.size());
    return tl::unexpected(cursors.error());
  }
  return std::unique_ptr<Rings>(new Rings(rings, *cursors, capture.facts.ring_bytes, lanes));
}

Rings::Rings(std::span<std::byte> rings, std::span<std::byte> cursors, std::size_t ring_bytes,
             std::size_t lanes)
    : rings_(rings), cursors_(cursors) {
  lanes_.reserve(lanes);
  for (std::size_t lane = 0; lane < lanes; ++lane) {
    const std::byte* const at = rings.data() + stats::capture_lane_offset(lane, ring_bytes);
    auto* const cursor = cursors.data() + lane * sizeof(stats::CaptureCursor);
    lanes_.push_back({stats::CaptureReader(*reinterpret_cast<const stats::CaptureLaneState*>(at),
                                           std::span(at + stats::kCaptureStateBytes, ring_bytes),
                                           *reinterpret_cast<stats::CaptureCursor*>(cursor))});
  }
}

Rings::~Rings() {
  munmap(rings_.data(), rings_.size());
  munmap(cursors_.data(), cursors_.size());
}

std::uint64_t Rings::recorded() const {
  std::uint64_t sum = 0;
  for (const Lane& lane : lanes_) sum += lane.reader.recorded();
  return sum;
}

std::uint64_t Rings::lost() const {
  std::uint64_t sum = 0;
  for (const Lane& lane : lanes_) sum += lane.reader.lost();
  return sum;
}

}  // namespace ztcp::capture
