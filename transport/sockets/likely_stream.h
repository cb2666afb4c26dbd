// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Finds the stream on which most data arrives, if there is one. The lane reads it directly, with
// one system call; asking epoll first would take two.
#pragma once

#include <algorithm>

namespace ztcp::sockets {

template <class Stream>
class LikelyStream {
 public:
  // Null: none stands out.
  Stream* get() const { return stands_out_ ? stream_ : nullptr; }
  // Called for each stream that received data.
  void note(Stream& stream) {
    if (stream_ == &stream) {
      lead_ = std::min(lead_ + 1, kMost);
      stands_out_ |= lead_ == kMost;
    } else if (lead_ != 0) {
      stands_out_ &= --lead_ != 0;
    } else {
      stream_ = &stream;
      lead_ = 1;
    }
  }
  void forget(const Stream& stream) {
    if (stream_ == &stream) *this = {};
  }

 private:
  static constexpr int kMost = 4;

  Stream* stream_ = nullptr;
  int lead_ = 0;  // Receives of this stream less those of all others, from 0 to kMost.
  bool stands_out_ = false;
};

}  // namespace ztcp::sockets
