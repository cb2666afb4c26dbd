// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A GPU's memory as a NIC reaches it: moved by the CUDA driver, over a stream that waits for no
// other, so that kernels which wait for the bytes are not waited for. The driver is the one that
// the process has loaded; without one no memory is a GPU's. Under the NIC's lock.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ztcp::soft_nic {

class Gpu {
 public:
  // Whose memory that range is, all of it in one allocation. nullptr: none's.
  static Gpu* of(std::uint64_t address, std::size_t size_bytes);

  // False: the driver refused, and stderr says why.
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
