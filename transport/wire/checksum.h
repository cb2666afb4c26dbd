// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The Internet checksum (RFC 1071) over pieces of any length, odd ones included.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "core/address.h"
#include "core/unprotected.h"
#include "transport/wire/ip.h"

namespace ztcp::wire {

namespace detail {
// Ones' complement sums of 16-bit words in memory order, not folded below 64 bits. An odd last
// byte counts as the first byte of a word.
ZTCP_UNPROTECTED std::uint64_t sum_words(const std::byte* data, std::size_t size_bytes) noexcept;
// The same, in one pass with a copy of them to `to`.
ZTCP_UNPROTECTED std::uint64_t copy_words(std::byte* to, const std::byte* data,
                                          std::size_t size_bytes) noexcept;

// Adds with end-around carry: 2^64 and 2^16 are both 1 modulo 2^16 - 1.
constexpr std::uint64_t add_carry(std::uint64_t a, std::uint64_t b) noexcept {
  const std::uint64_t sum = a + b;
  return sum + (sum < a ? 1U : 0U);
}
constexpr std::uint16_t fold(std::uint64_t sum) noexcept {
  sum = (sum & 0xffffffff) + (sum >> 32);
  sum = (sum & 0xffff) + ((sum >> 16) & 0xffff) + (sum >> 32);
  sum = (sum & 0xffff) + (sum >> 16);
  sum = (sum & 0xffff) + (sum >> 16);
  return static_cast<std::uint16_t>(sum);
}
}  // namespace detail

// A running sum. Bytes are added in stream order; a piece that begins at an odd offset is rotated
// (RFC 1071 section 2, B), so fragments of odd length need not be joined first.
class Checksum {
 public:
  void add(std::span<const std::byte> bytes) noexcept {
    append(detail::sum_words(bytes.data(), bytes.size()), bytes.size());
  }
  // The same, and copies them to `to`, which does not overlap them.
  void add_copy(std::byte* to, std::span<const std::byte> bytes) noexcept {
    append(detail::copy_words(to, bytes.data(), bytes.size()), bytes.size());
  }
  // A 16-bit number as it would stand in the data, at an even offset.
  void add_u16(std::uint16_t value) noexcept {
    sum_ = detail::add_carry(sum_, __builtin_bswap16(value));
  }
  // As its 16 bytes would stand in the data, at an even offset.
  void add_address(IpAddress address) noexcept {
    sum_ = detail::add_carry(sum_, __builtin_bswap64(address.high));
    sum_ = detail::add_carry(sum_, __builtin_bswap64(address.low));
  }

  // The folded sum, as stored in the checksum field for offload. 0xffff over data that contains its
  // own checksum means the data is good.
  std::uint16_t folded() const noexcept { return __builtin_bswap16(detail::fold(sum_)); }
  // The value for the checksum field: the complement of the sum.
  std::uint16_t finish() const noexcept { return static_cast<std::uint16_t>(~folded()); }
  // True when the added bytes, their checksum field included, are undamaged.
  bool is_good() const noexcept { return folded() == 0xffff; }

 private:
  void append(std::uint64_t sum, std::size_t size_bytes) noexcept {
    if (odd_) sum = __builtin_bswap16(detail::fold(sum));
    sum_ = detail::add_carry(sum_, sum);
    odd_ ^= (size_bytes & 1U) != 0;
  }

  std::uint64_t sum_ = 0;
  bool odd_ = false;  // The bytes so far end in the middle of a word.
};

// The pseudo header of RFC 9293 section 3.1 and RFC 8200 section 8.1, by the addresses' family: an
// IPv4 address as IpAddress has 0xffff before its four bytes, which is zero in ones' complement.
// `upper_bytes` is header plus payload; 0 for a super-segment whose length the NIC adds to each
// piece it cuts. It may exceed 16 bits.
inline Checksum pseudo_header_checksum(IpAddress source, IpAddress destination,
                                       std::uint32_t upper_bytes,
                                       IpProtocol protocol = IpProtocol::kTcp) noexcept {
  Checksum sum;
  sum.add_address(source);
  sum.add_address(destination);
  sum.add_u16(static_cast<std::uint16_t>(protocol));
  sum.add_u16(static_cast<std::uint16_t>(upper_bytes >> 16));
  sum.add_u16(static_cast<std::uint16_t>(upper_bytes));
  return sum;
}

// For an IPv4 header or an ICMP message.
inline std::uint16_t internet_checksum(std::span<const std::byte> bytes) noexcept {
  Checksum sum;
  sum.add(bytes);
  return sum.finish();
}

}  // namespace ztcp::wire
