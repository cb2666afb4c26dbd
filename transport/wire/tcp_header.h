// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// TCP header as a value (RFC 9293 section 3.1). Sequence numbers are raw here; tcp/ gives them
// their arithmetic.
#pragma once

#include <cstdint>
#include <span>

#include "transport/wire/tcp_options.h"

namespace ztcp::wire {

// The nine flags of bytes 12 and 13, as in that 16-bit word.
class TcpFlags {
 public:
  static constexpr std::uint16_t kMask = 0x1ff;
  constexpr TcpFlags() = default;
  constexpr explicit TcpFlags(unsigned bits) : bits_(static_cast<std::uint16_t>(bits)) {}
  constexpr std::uint16_t bits() const { return bits_; }

  // All of `other` are set.
  constexpr bool has(TcpFlags other) const { return (bits_ & other.bits_) == other.bits_; }
  constexpr bool has_any(TcpFlags other) const { return (bits_ & other.bits_) != 0; }

  friend constexpr TcpFlags operator|(TcpFlags a, TcpFlags b) {
    return TcpFlags(unsigned{a.bits_} | b.bits_);
  }
  friend constexpr TcpFlags operator&(TcpFlags a, TcpFlags b) {
    return TcpFlags(unsigned{a.bits_} & b.bits_);
  }
  constexpr TcpFlags& operator|=(TcpFlags other) { return *this = *this | other; }
  friend constexpr bool operator==(TcpFlags, TcpFlags) = default;

 private:
  std::uint16_t bits_ = 0;
};

inline constexpr TcpFlags kFin{0x01};
inline constexpr TcpFlags kSyn{0x02};
inline constexpr TcpFlags kRst{0x04};
inline constexpr TcpFlags kPsh{0x08};
inline constexpr TcpFlags kAck{0x10};
inline constexpr TcpFlags kUrg{0x20};
inline constexpr TcpFlags kEce{0x40};
inline constexpr TcpFlags kCwr{0x80};
inline constexpr TcpFlags kAe{0x100};
// AE, CWR and ECE as one field of three bits, ACE (RFC 9768 section 3.2.2).
constexpr unsigned ace_of(TcpFlags flags) { return flags.bits() >> 6U & 7U; }
constexpr TcpFlags ace_flags(unsigned ace) { return TcpFlags((ace & 7U) << 6U); }

inline constexpr std::size_t kTcpBytes = 20;
inline constexpr std::size_t kMaxTcpBytes = kTcpBytes + kMaxTcpOptionBytes;

struct TcpHeader {
  std::uint16_t source_port = 0;
  std::uint16_t destination_port = 0;
  std::uint32_t sequence = 0;
  std::uint32_t acknowledgment = 0;
  std::uint16_t window = 0;  // As on the wire: not scaled.
  TcpFlags flags;
  std::uint8_t header_bytes = kTcpBytes;  // Set by parse; emit uses the options.
  TcpOptions options;
};

inline constexpr std::size_t kTcpFlagsOffset = 12;  // The word with the header's length.
inline constexpr std::size_t kTcpChecksumOffset = 16;

// `segment` holds at least the whole header. The checksum is not verified.
bool parse_tcp(std::span<const std::byte> segment, TcpHeader& header) noexcept;

// Writes the header, its checksum field zero, and returns its length (at most kMaxTcpBytes).
std::size_t emit_tcp(const TcpHeader& header, std::byte* out) noexcept;

}  // namespace ztcp::wire
