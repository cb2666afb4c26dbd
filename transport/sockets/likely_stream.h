// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The one stream that most bytes come by, if there is one: to read it takes one call, to ask first
// which one is readable two.
#pragma once

#include <algorithm>

namespace ztcp::sockets {

template <class Stream>
class LikelyStream {
 public:
  // Null: none stands out.
  Stream* get() const { return stands_out_ ? stream_ : nullptr; }
  // It brought something.
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
  int lead_ = 0;  // How often it brought something more than all others.
  bool stands_out_ = false;
};

}  // namespace ztcp::sockets
