// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A TCP sequence number: an integer modulo 2^32 (RFC 9293 section 3.4).
//
// Numbers can be ordered only if they are less than 2^31 apart, which every window we accept
// guarantees. The order is not transitive, so there is no operator< and no use as a key.
#pragma once

#include <cstdint>

namespace ztcp::tcp {

class SeqNum {
 public:
  constexpr SeqNum() = default;
  constexpr explicit SeqNum(std::uint32_t raw) : raw_(raw) {}

  constexpr std::uint32_t raw() const { return raw_; }

  friend constexpr bool operator==(SeqNum, SeqNum) = default;
  friend constexpr SeqNum operator+(SeqNum s, std::uint32_t n) { return SeqNum(s.raw_ + n); }
  friend constexpr SeqNum operator-(SeqNum s, std::uint32_t n) { return SeqNum(s.raw_ - n); }

  // Signed distance from `from` to `to`; negative when `to` is older.
  friend constexpr std::int32_t distance(SeqNum from, SeqNum to) {
    return static_cast<std::int32_t>(to.raw_ - from.raw_);
  }
  // Bytes from `from` up to `to`, which must not be older.
  friend constexpr std::uint32_t bytes_between(SeqNum from, SeqNum to) {
    return to.raw_ - from.raw_;
  }

  constexpr bool before(SeqNum other) const { return distance(*this, other) > 0; }
  constexpr bool at_or_before(SeqNum other) const { return distance(*this, other) >= 0; }
  constexpr bool after(SeqNum other) const { return distance(*this, other) < 0; }

  // True when first <= *this < first + len.
  constexpr bool in_window(SeqNum first, std::uint32_t len) const {
    return raw_ - first.raw_ < len;
  }

 private:
  std::uint32_t raw_ = 0;
};

constexpr SeqNum later(SeqNum a, SeqNum b) { return a.before(b) ? b : a; }
constexpr SeqNum earlier(SeqNum a, SeqNum b) { return a.before(b) ? a : b; }

}  // namespace ztcp::tcp
