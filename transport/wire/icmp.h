// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The part of ICMP (RFC 792) that TCP needs: echo, so that an operator's ping works, and the errors
// for our packets, one of which carries the next hop's MTU (RFC 1191).
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "core/address.h"
#include "transport/wire/byte_order.h"
#include "transport/wire/checksum.h"
#include "transport/wire/ipv4.h"

namespace ztcp::wire {

inline constexpr std::size_t kIcmpBytes = 8;

struct IcmpEcho {
  bool is_request = true;
  std::uint16_t identifier = 0;
  std::uint16_t sequence = 0;
};

// A router's or host's report on a TCP segment of ours that it dropped. It is unauthenticated: act
// on it only when the quoted numbers fit a live connection (RFC 5927).
struct IcmpError {
  enum Type : std::uint8_t { kUnreachable = 3, kTimeExceeded = 11, kParameterProblem = 12 };
  // Codes of kUnreachable.
  static constexpr std::uint8_t kNet = 0;
  static constexpr std::uint8_t kHost = 1;
  static constexpr std::uint8_t kProtocol = 2;
  static constexpr std::uint8_t kPort = 3;
  static constexpr std::uint8_t kFragmentationNeeded = 4;
  static constexpr std::uint8_t kNetProhibited = 9;  // Codes up to here: RFC 1122 section 3.2.2.1.
  static constexpr std::uint8_t kHostProhibited = 10;
  static constexpr std::uint8_t kProhibited = 13;  // RFC 1812 section 5.2.7.1.

  Type type = kUnreachable;
  std::uint8_t code = 0;
  std::uint16_t next_hop_mtu_bytes = 0;  // Code 4 only; 0 from routers older than RFC 1191.
  Endpoint source;                       // The quoted segment's source: our own end.
  Endpoint destination;
  std::uint32_t sequence = 0;
};

// The parsers take a message whose checksum has been verified (frame_parser.h), and return nullopt
// for any other type. For an error its first kIcmpErrorBytes are enough.
inline std::optional<IcmpEcho> parse_icmp_echo(std::span<const std::byte> message) noexcept {
  if (message.size() < kIcmpBytes) return std::nullopt;
  const std::uint8_t type = load_u8(message.data());
  if ((type != 8 && type != 0) || load_u8(message.data() + 1) != 0) return std::nullopt;
  return IcmpEcho{type == 8, load_be16(message.data() + 4), load_be16(message.data() + 6)};
}

// The error, the longest IPv4 header, and the part of TCP that identifies a segment.
inline constexpr std::size_t kQuotedTcpBytes = 8;
inline constexpr std::size_t kIcmpErrorBytes = kIcmpBytes + 60 + kQuotedTcpBytes;

inline std::optional<IcmpError> parse_icmp_error(std::span<const std::byte> message) noexcept {
  if (message.size() < kIcmpBytes + kIpv4Bytes + kQuotedTcpBytes) return std::nullopt;
  IcmpError result;
  result.type = IcmpError::Type{load_u8(message.data())};
  if (result.type != IcmpError::kUnreachable && result.type != IcmpError::kTimeExceeded &&
      result.type != IcmpError::kParameterProblem)
    return std::nullopt;
  result.code = load_u8(message.data() + 1);
  if (result.type == IcmpError::kUnreachable && result.code == IcmpError::kFragmentationNeeded)
    result.next_hop_mtu_bytes = load_be16(message.data() + 6);
  const auto quoted = message.subspan(kIcmpBytes);
  // The quoted packet is truncated, so its length field exceeds the quoted bytes.
  Ipv4Header ip;
  if (!parse_ipv4(quoted, SIZE_MAX, ip) || ip.protocol != IpProtocol::kTcp ||
      quoted.size() < ip.header_bytes + kQuotedTcpBytes)
    return std::nullopt;
  const std::byte* tcp = quoted.data() + ip.header_bytes;
  result.source = {ip.source, load_be16(tcp)};
  result.destination = {ip.destination, load_be16(tcp + 2)};
  result.sequence = load_be32(tcp + 4);
  return result;
}

// Turns the echo request in `message` into its reply.
inline void make_echo_reply(std::span<std::byte> message) noexcept {
  store_u8(message.data(), 0);
  store_be16(message.data() + 2, 0);
  store_be16(message.data() + 2, internet_checksum(message));
}

inline constexpr std::size_t kEmittedIcmpErrorBytes = kIcmpBytes + kIpv4Bytes + kQuotedTcpBytes;

// Writes and returns kEmittedIcmpErrorBytes.
inline std::size_t emit_icmp_error(const IcmpError& error, std::byte* out) noexcept {
  std::memset(out, 0, kEmittedIcmpErrorBytes);
  store_u8(out, error.type);
  store_u8(out + 1, error.code);
  store_be16(out + 6, error.next_hop_mtu_bytes);
  Ipv4Header quoted;
  quoted.source = error.source.address.v4();
  quoted.destination = error.destination.address.v4();
  quoted.total_bytes = 1500;
  std::byte* tcp = out + kIcmpBytes + emit_ipv4(quoted, out + kIcmpBytes);
  store_be16(tcp, error.source.port);
  store_be16(tcp + 2, error.destination.port);
  store_be32(tcp + 4, error.sequence);
  store_be16(out + 2, internet_checksum({out, kEmittedIcmpErrorBytes}));
  return kEmittedIcmpErrorBytes;
}

}  // namespace ztcp::wire
