// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Memory as the transport in memory has it registered. "GPU" memory is pages that nobody may touch
// (PROT_NONE): who takes it for host memory gets SIGSEGV. The region alone reaches it, through the
// DMA-BUF (any file that can be mapped) it was registered with, or by opening the pages for the
// time of one copy. What it is given for such memory is not to be seen there before a flush.
//
// Not thread-safe: under the lock of its transport.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <vector>

#include "transport/transport.h"

namespace ztcp::test {

class MemoryRegion final : public MemoryKey {
 public:
  // Received, and not flushed yet.
  struct Arrival {
    std::byte* to = nullptr;
    std::vector<std::byte> bytes;
  };

  // kInvalidArgument: not at the beginning of a page, or a DMA-BUF that ends before the region.
  static Result<std::shared_ptr<MemoryRegion>> make(const Region& region);
  ~MemoryRegion();
  MemoryRegion(const MemoryRegion&) = delete;
  MemoryRegion& operator=(const MemoryRegion&) = delete;

  bool is_gpu() const { return region_.kind == MemoryKind::kCuda; }
  bool covers(std::span<const std::byte> bytes) const;

  std::vector<std::byte> read(std::span<const std::byte> bytes) const;
  // Into host memory at once.
  void receive(std::byte* to, std::span<const std::byte> bytes);
  // Takes out what arrived in `bytes`; write() makes it visible.
  std::vector<Arrival> take_arrivals(std::span<const std::byte> bytes);
  void write(const Arrival& arrival) const;

 private:
  explicit MemoryRegion(const Region& region) : region_(region) {}
  // Runs `copy` with where `at` can be reached.
  template <class Copy>
  void reach(const std::byte* at, Copy&& copy) const;

  Region region_;
  std::byte* mapped_ = nullptr;  // Of the DMA-BUF: where the region begins.
  void* mapping_ = nullptr;
  std::size_t mapping_bytes_ = 0;
  std::vector<Arrival> arrivals_;
};

}  // namespace ztcp::test
