// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The part of ICMPv6 (RFC 4443) that TCP needs: echo, and the errors for our packets, one of which
// carries the next hop's MTU (RFC 8201). An error is told in ICMP's terms (icmp.h), so that the
// stack judges both alike. Neighbour discovery is in ndp.h.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>

#include "core/address.h"
#include "transport/wire/byte_order.h"
#include "transport/wire/checksum.h"
#include "transport/wire/icmp.h"
#include "transport/wire/ipv6.h"

namespace ztcp::wire {

// Any value may arrive; only these are handled.
enum class Icmpv6Type : std::uint8_t {
  kUnreachable = 1,
  kPacketTooBig = 2,
  kTimeExceeded = 3,
  kParameterProblem = 4,
  kEchoRequest = 128,
  kEchoReply = 129,
  kMldQuery = 130,
  kRouterSolicitation = 133,
  kRouterAdvertisement = 134,
  kNeighbourSolicitation = 135,
  kNeighbourAdvertisement = 136,
  kMldReport = 143,
};

inline Icmpv6Type icmpv6_type(std::span<const std::byte> message) noexcept {
  return Icmpv6Type{load_u8(message.data())};
}

// The error, the IPv6 header, and the part of TCP that identifies a segment. Packets of ours have
// no extension headers.
inline constexpr std::size_t kIcmpv6ErrorBytes = kIcmpBytes + kIpv6Bytes + kQuotedTcpBytes;

// The codes of RFC 4443 section 3, and the errors of the same meaning for IPv4 (RFC 7915 section
// 5.2).
inline bool translate_icmpv6_error(Icmpv6Type type, std::uint8_t code, IcmpError& error) noexcept {
  switch (type) {
    case Icmpv6Type::kUnreachable: {
      constexpr std::uint8_t kCodes[] = {
          IcmpError::kNet,  IcmpError::kProhibited, IcmpError::kNet,       IcmpError::kHost,
          IcmpError::kPort, IcmpError::kProhibited, IcmpError::kProhibited};
      error.type = IcmpError::kUnreachable;
      error.code = code < std::size(kCodes) ? kCodes[code] : IcmpError::kNet;
      return true;
    }
    case Icmpv6Type::kPacketTooBig:
      error.type = IcmpError::kUnreachable;
      error.code = IcmpError::kFragmentationNeeded;
      return true;
    case Icmpv6Type::kTimeExceeded:
      error.type = IcmpError::kTimeExceeded;
      return true;
    case Icmpv6Type::kParameterProblem: {
      constexpr std::uint8_t kUnrecognizedNextHeader = 1;
      const bool is_no_tcp = code == kUnrecognizedNextHeader;
      error.type = is_no_tcp ? IcmpError::kUnreachable : IcmpError::kParameterProblem;
      error.code = is_no_tcp ? IcmpError::kProtocol : std::uint8_t{0};
      return true;
    }
    default:
      return false;
  }
}

// The parsers take a message whose checksum has been verified (frame_parser.h), and return nullopt
// for any other type. For an error its first kIcmpv6ErrorBytes are enough.
inline std::optional<IcmpError> parse_icmpv6_error(std::span<const std::byte> message) noexcept {
  if (message.size() < kIcmpv6ErrorBytes) return std::nullopt;
  IcmpError result;
  const std::byte* p = message.data();
  if (!translate_icmpv6_error(icmpv6_type(message), load_u8(p + 1), result)) return std::nullopt;
  if (icmpv6_type(message) == Icmpv6Type::kPacketTooBig)
    result.next_hop_mtu_bytes =
        static_cast<std::uint16_t>(std::min<std::uint32_t>(load_be32(p + 4), UINT16_MAX));
  IpHeader ip;
  // The quoted packet is truncated, so its length field exceeds the quoted bytes.
  if (!parse_ipv6(message.subspan(kIcmpBytes), SIZE_MAX, ip) || ip.protocol != IpProtocol::kTcp ||
      ip.header_bytes != kIpv6Bytes)
    return std::nullopt;
  const std::byte* tcp = p + kIcmpBytes + kIpv6Bytes;
  result.source = {ip.source, load_be16(tcp)};
  result.destination = {ip.destination, load_be16(tcp + 2)};
  result.sequence = load_be32(tcp + 4);
  return result;
}

inline bool is_icmpv6_echo_request(std::span<const std::byte> message) noexcept {
  return message.size() >= kIcmpBytes && icmpv6_type(message) == Icmpv6Type::kEchoRequest &&
         load_u8(message.data() + 1) == 0;
}

// Sets the checksum of a message from `source` to `destination`.
inline void fill_icmpv6_checksum(IpAddress source, IpAddress destination,
                                 std::span<std::byte> message) noexcept {
  store_be16(message.data() + 2, 0);
  Checksum sum = pseudo_header_checksum(
      source, destination, static_cast<std::uint32_t>(message.size()), IpProtocol::kIcmpv6);
  sum.add(message);
  store_be16(message.data() + 2, sum.finish());
}

// Turns the echo request in `message` into its reply, from `source` to `destination`.
inline void make_icmpv6_echo_reply(IpAddress source, IpAddress destination,
                                   std::span<std::byte> message) noexcept {
  store_u8(message.data(), static_cast<std::uint8_t>(Icmpv6Type::kEchoReply));
  fill_icmpv6_checksum(source, destination, message);
}

}  // namespace ztcp::wire
