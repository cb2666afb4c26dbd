// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Parses a received frame once: its kind, its headers as values, and the place of its payload. All
// length checks happen here; every offset in a ParsedFrame may be trusted.
#pragma once

#include <cstdint>
#include <span>

#include "core/frame.h"
#include "transport/wire/ethernet.h"
#include "transport/wire/ip.h"
#include "transport/wire/tcp_header.h"

namespace ztcp::wire {

enum class FrameKind : std::uint8_t {
  kTcp,        // ethernet, ip, tcp are valid.
  kIcmp,       // ethernet, ip are valid.
  kIcmpv6,     // The same.
  kArp,        // ethernet is valid; the payload is the ARP packet, with any padding.
  kForeign,    // Another EtherType or IP protocol: not for us, but valid.
  kMalformed,  // Truncated, fragmented, or wrong lengths or options.
};

struct ParsedFrame {
  FrameKind kind = FrameKind::kMalformed;
  EthernetHeader ethernet;
  IpHeader ip;  // The family is ethernet.type.
  TcpHeader tcp;
  // After the innermost header named above, counted from the frame's first byte. Ethernet padding
  // is not part of it.
  std::uint32_t payload_offset = 0;
  std::uint32_t payload_bytes = 0;

  bool is_ipv6() const { return ethernet.type == EtherType::kIpv6; }
};

// Reads the headers only; they must lie in frame.head. Verifies no checksum. Writes the fields that
// are valid for `kind` and may leave the others unchanged.
void parse_frame(const RxFrame& frame, ParsedFrame& parsed) noexcept;
inline ParsedFrame parse_frame(const RxFrame& frame) noexcept {
  ParsedFrame parsed;
  parse_frame(frame, parsed);
  return parsed;
}

// Sums the IPv4 header and the TCP segment (each byte once), or trusts the NIC where it has done
// so. Only for kTcp. IPv6's header has no checksum of its own.
bool verify_checksums(const RxFrame& frame, const ParsedFrame& parsed) noexcept;

// Sums the IPv4 header and the ICMP message. Only for kIcmp and kIcmpv6, which are rare: the NIC's
// result covers TCP alone.
bool verify_icmp_checksums(const RxFrame& frame, const ParsedFrame& parsed) noexcept;

// Calls fn(std::span<const std::byte>) for each piece of [offset, offset + size_bytes) of the
// frame, in order. The range must lie inside the frame.
template <class Fn>
void for_each_piece(const RxFrame& frame, std::size_t offset, std::size_t size_bytes, Fn&& fn) {
  if (offset + size_bytes <= frame.head.size()) [[likely]] {
    if (size_bytes > 0) fn(frame.head.subspan(offset, size_bytes));
    return;
  }
  const auto visit = [&](std::span<const std::byte> piece) {
    if (offset >= piece.size()) {
      offset -= piece.size();
      return;
    }
    piece = piece.subspan(offset);
    offset = 0;
    if (piece.size() > size_bytes) piece = piece.first(size_bytes);
    size_bytes -= piece.size();
    if (!piece.empty()) fn(piece);
  };
  visit(frame.head);
  for (std::size_t i = 0; i < frame.more.size() && size_bytes > 0; ++i) visit(frame.more[i]);
}

}  // namespace ztcp::wire
