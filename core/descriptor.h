// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Sole owner of a file descriptor. A descriptor that forked children must not keep is a Fd.
#pragma once

#include <unistd.h>
#include <utility>

#include "core/standard_streams.h"

namespace ztcp {

class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(off_standard_streams(fd)) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  explicit operator bool() const { return fd_ >= 0; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

}  // namespace ztcp
