// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Fuzz input as a stream of decisions. It ends in zeros, so that every input is a valid script.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

namespace ztcp::fuzz {

class ByteSource {
 public:
  ByteSource(const std::uint8_t* data, std::size_t size) : left_(data, size) {}
  bool is_empty() const { return left_.empty(); }

  std::uint8_t u8() {
    if (left_.empty()) return 0;
    const std::uint8_t value = left_.front();
    left_ = left_.subspan(1);
    return value;
  }
  std::uint16_t u16() {
    const unsigned high = u8();
    return static_cast<std::uint16_t>(high << 8 | u8());
  }
  std::span<const std::byte> bytes(std::size_t count) {
    const auto taken = left_.first(std::min(count, left_.size()));
    left_ = left_.subspan(taken.size());
    return std::as_bytes(taken);
  }

 private:
  std::span<const std::uint8_t> left_;
};

// An assert() that stays in release builds.
inline void require(bool condition) {
  if (!condition) std::abort();
}

}  // namespace ztcp::fuzz
