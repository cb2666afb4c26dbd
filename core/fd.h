// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Sole owner of a file descriptor that no forked child may keep: while it is open it is on the list
// of fork_guard.h. Movable between threads, used by one at a time.
#pragma once

#include <unistd.h>
#include <utility>

#include "core/fork_guard.h"
#include "core/standard_streams.h"

namespace ztcp {

class Fd {
 public:
  Fd() = default;
  explicit Fd(int fd) : fd_(off_standard_streams(fd)) {
    if (fd_ < 0) return;
    try {
      close_in_children(fd_);
    } catch (...) {  // Out of memory.
      ::close(fd_);
      throw;
    }
  }
  Fd(Fd&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Fd& operator=(Fd&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Fd() {
    if (fd_ < 0) return;
    // In a forked child the fork handler has closed it, and the number may be in use again.
    if (forget_in_children(fd_)) ::close(fd_);
  }

  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }

 private:
  int fd_ = -1;
};

}  // namespace ztcp
