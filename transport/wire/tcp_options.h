// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// TCP options: MSS (RFC 9293 section 3.7.1), window scale and timestamps (RFC 7323), SACK
// (RFC 2018), AccECN (RFC 9768).
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>

namespace ztcp::wire {

inline constexpr std::size_t kMaxTcpOptionBytes = 40;
inline constexpr std::size_t kTimestampOptionBytes = 12;  // As sent: two NOPs in front.
inline constexpr std::size_t kMaxSackBlocks = 4;
inline constexpr std::size_t kShortEcnOptionBytes = 8;
// First bytes of the option area in nearly every segment of an established connection: two NOPs,
// and the kind and length of timestamps.
inline constexpr std::uint32_t kNopNopTimestamps = 0x0101080a;

struct SackBlock {
  std::uint32_t begin = 0;  // First sequence number held.
  std::uint32_t end = 0;    // One past the last.
  friend bool operator==(const SackBlock&, const SackBlock&) = default;
};

struct Timestamps {
  std::uint32_t value = 0;
  std::uint32_t echo = 0;
  friend bool operator==(const Timestamps&, const Timestamps&) = default;
};

// Payload bytes that the sender of the option received with each codepoint: 24 bits, from 1 on, CE
// from 0 on.
struct EcnBytes {
  std::uint32_t ect0 = 0;
  std::uint32_t ce = 0;
  std::uint32_t ect1 = 0;
  bool is_whole = true;  // False: a short option, only `ce` is valid.
  friend bool operator==(const EcnBytes&, const EcnBytes&) = default;
};

struct TcpOptions {
  std::optional<Timestamps> timestamps;
  std::optional<std::uint16_t> mss_bytes;
  std::optional<std::uint8_t> window_scale;  // 0-14; larger ones arrive as 14 (RFC 7323 2.3).
  std::optional<EcnBytes> ecn_bytes;
  bool sack_permitted = false;
  std::uint8_t sack_count = 0;  // Number of valid entries in `sack`.
  std::array<SackBlock, kMaxSackBlocks> sack;
  std::span<const SackBlock> sack_blocks() const { return {sack.data(), sack_count}; }
};

// `bytes` is the option area. Unknown kinds are skipped; a length beyond the area, or wrong for a
// known kind, makes the segment malformed: false. `options.sack` is written only as far as
// sack_count.
bool parse_tcp_options(std::span<const std::byte> bytes, TcpOptions& options) noexcept;

// Writes at most kMaxTcpOptionBytes, padded with NOPs to a multiple of 4, and returns their number.
// SACK blocks that no longer fit are left out (three fit beside timestamps); AccECN's counters take
// the rest, and are left out if it is too small for two of them.
std::size_t emit_tcp_options(const TcpOptions& options, std::byte* out) noexcept;

}  // namespace ztcp::wire
