// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Sole owner of an anonymous mapping: zeroed, page-aligned, backed by memory only as it is used,
// and absent from forked children.
#pragma once

#include <cstddef>
#include <sys/mman.h>
#include <utility>

#include "core/process_mark.h"
#include "core/result.h"

namespace ztcp::hugepage {

class Mapping {
 public:
  static Result<Mapping> anonymous(std::size_t size_bytes) {
    void* address = mmap(nullptr, size_bytes, PROT_READ | PROT_WRITE,
                         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address == MAP_FAILED) return fail_errno("mmap");
    mark_process();
    madvise(address, size_bytes, MADV_DONTFORK);
    return Mapping(static_cast<std::byte*>(address), size_bytes);
  }

  Mapping() = default;
  Mapping(Mapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
    return *this;
  }
  ~Mapping() {
    // In a forked child the range is free or belongs to another mapping.
    if (data_ != nullptr && !in_forked_child()) munmap(data_, size_);
  }

  std::byte* data() const { return data_; }
  std::size_t size() const { return size_; }

 private:
  Mapping(std::byte* data, std::size_t size) : data_(data), size_(size) {}

  std::byte* data_ = nullptr;
  std::size_t size_ = 0;
};

}  // namespace ztcp::hugepage
