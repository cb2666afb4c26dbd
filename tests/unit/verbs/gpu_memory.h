// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Memory that no CPU can reach by its address, with a descriptor that stands for it, as NCCL passes
// a GPU's.
#pragma once

#include <algorithm>
#include <cstddef>
#include <span>
#include <sys/mman.h>
#include <unistd.h>
#include <vector>

#include "transport/transport.h"

namespace ztcp::verbs {

class GpuMemory {
 public:
  explicit GpuMemory(std::size_t size_bytes)
      : size_bytes_(size_bytes), fd_(memfd_create("gpu", MFD_CLOEXEC)) {
    if (ftruncate(fd_, static_cast<off_t>(size_bytes)) == 0)
      at_ = mmap(nullptr, size_bytes, PROT_NONE, MAP_SHARED, fd_, 0);
  }
  ~GpuMemory() {
    munmap(at_, size_bytes_);
    close(fd_);
  }
  GpuMemory(const GpuMemory&) = delete;
  GpuMemory& operator=(const GpuMemory&) = delete;

  std::span<std::byte> bytes() const { return {static_cast<std::byte*>(at_), size_bytes_}; }
  Region region() const {
    return {.address = at_,
            .size_bytes = size_bytes_,
            .kind = MemoryKind::kCuda,
            .dmabuf_fd = fd_,
            .offset = 0};
  }
  // For a module that knows GPU memory by its address.
  Region region_by_address() const {
    return {.address = at_, .size_bytes = size_bytes_, .kind = MemoryKind::kCuda};
  }

  // As the GPU sees and writes it.
  std::vector<std::byte> seen() const {
    mprotect(at_, size_bytes_, PROT_READ);
    std::vector<std::byte> out(bytes().begin(), bytes().end());
    mprotect(at_, size_bytes_, PROT_NONE);
    return out;
  }
  void write(std::span<const std::byte> from) const {
    mprotect(at_, size_bytes_, PROT_WRITE);
    std::copy(from.begin(), from.end(), bytes().begin());
    mprotect(at_, size_bytes_, PROT_NONE);
  }

 private:
  const std::size_t size_bytes_;
  const int fd_;
  void* at_ = MAP_FAILED;
};

}  // namespace ztcp::verbs
