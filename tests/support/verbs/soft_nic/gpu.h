// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A NIC's access to GPU memory: the CUDA driver moves it, over a stream that waits for no other
// stream, because kernels may be waiting for these bytes. The driver is the one that the process
// has loaded; without one, no memory is a GPU's. Under the NIC's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ztcp::soft_nic {

class Gpu {
 public:
  // The GPU with an allocation that holds the whole range; nullptr: none.
  static Gpu* of(std::uint64_t address, std::size_t size_bytes);

  // False: the driver refused; stderr says why.
  bool read(std::span<std::byte> to, std::uint64_t address);
  bool write(std::uint64_t address, std::span<const std::byte> from);

 private:
  explicit Gpu(int ordinal) : ordinal_(ordinal) {}
  static Gpu* open(int ordinal);
  bool prepare();
  bool move(std::byte* host, std::uint64_t address, std::size_t size_bytes, bool is_read);

  const int ordinal_;
  void* context_ = nullptr;
  void* stream_ = nullptr;
  std::byte* staging_ = nullptr;  // Pinned.
};

}  // namespace ztcp::soft_nic
