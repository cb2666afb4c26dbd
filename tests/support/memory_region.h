// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A registration of the in-memory transport. "GPU" memory is pages without access rights
// (PROT_NONE), so that code that takes it for host memory gets SIGSEGV. Only the region reaches it:
// through the DMA-BUF it was registered with (any file that can be mapped), or by making the pages
// accessible for the time of one copy. Bytes received into such memory become visible at a flush.
//
// Not thread-safe: callers hold the transport's lock.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "transport/transport.h"

namespace ztcp::test {

class MemoryRegion final : public MemoryKey {
 public:
  // Bytes that were received and not flushed yet.
  struct Arrival {
    std::byte* to = nullptr;
    std::vector<std::byte> bytes;
  };

  // kInvalidArgument: it does not begin at a page, or the DMA-BUF ends before the region.
  static Result<std::shared_ptr<MemoryRegion>> make(const Region& region);
  ~MemoryRegion();
  MemoryRegion(const MemoryRegion&) = delete;
  MemoryRegion& operator=(const MemoryRegion&) = delete;

  bool is_gpu() const { return region_.kind == MemoryKind::kCuda; }
  bool covers(std::span<const std::byte> bytes) const;

  std::vector<std::byte> read(std::span<const std::byte> bytes) const;
  // Bytes for host memory are written at once.
  void receive(std::byte* to, std::span<const std::byte> bytes);
  // Removes and returns the arrivals in `bytes`; write() makes them visible.
  std::vector<Arrival> take_arrivals(std::span<const std::byte> bytes);
  void write(const Arrival& arrival) const;

 private:
  explicit MemoryRegion(const Region& region) : region_(region) {}
  // Calls `copy` with an address at which the CPU can reach `at`.
  template <class Copy>
  void reach(const std::byte* at, Copy&& copy) const;

  Region region_;
  std::byte* mapped_ = nullptr;  // The region's first byte in the mapped DMA-BUF.
  void* mapping_ = nullptr;
  std::size_t mapping_bytes_ = 0;
  std::vector<Arrival> arrivals_;
};

}  // namespace ztcp::test
