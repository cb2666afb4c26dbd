// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Walks a path folder by folder, by descriptors, and ends at the first thing that someone other
// than root could have put there: so neither links nor races in folders of other users can lead it
// astray. The last part of a path is never followed.
#pragma once

#include <cstdint>
#include <string>
#include <unistd.h>
#include <utility>

#include "transport/core/result.h"

namespace ztcp::setup {

// A file descriptor and its owner.
class Descriptor {
 public:
  Descriptor() = default;
  explicit Descriptor(int fd) : fd_(fd) {}
  Descriptor(Descriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  Descriptor& operator=(Descriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  ~Descriptor() {
    if (fd_ >= 0) ::close(fd_);
  }
  int get() const { return fd_; }
  int release() { return std::exchange(fd_, -1); }

 private:
  int fd_ = -1;
};

struct Place {
  Descriptor folder;  // For the *at() calls.
  std::string name;   // In it; "." for "/".
};

class SafePath {
 public:
  // Folders and links below `root` must be root's, or this user's: tests are not always root.
  explicit SafePath(std::string root);

  // Errc::kRefused: somebody else could have had a hand in it.
  Result<Place> find(const std::string& path) const;

 private:
  Result<Descriptor> walk(const std::string& path, int links_left) const;
  bool trusted_user(std::uint32_t user) const;

  std::string root_;
};

}  // namespace ztcp::setup
