// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// IPv6 header (RFC 8200). Extension headers are skipped on receipt and never sent with TCP;
// fragments are refused, as IPv4's are.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/address.h"
#include "transport/wire/byte_order.h"
#include "transport/wire/ip.h"

namespace ztcp::wire {

inline constexpr std::size_t kIpv6Bytes = 40;
// Every link carries packets of this size (RFC 8200 section 5), so no path is taken to carry less.
inline constexpr std::uint16_t kIpv6LeastMtuBytes = 1280;

// Multicast groups on a link (RFC 4291 section 2.7.1, RFC 3810 section 5.2.14).
inline constexpr IpAddress kAllNodes{0xff02ULL << 48, 1};
inline constexpr IpAddress kAllRouters{0xff02ULL << 48, 2};
inline constexpr IpAddress kMldRouters{0xff02ULL << 48, 0x16};
// The group that neighbours ask for `address`.
constexpr IpAddress solicited_node(IpAddress address) {
  return {0xff02ULL << 48, 0x1'ff00'0000ULL | (address.low & 0xff'ffff)};
}
// The Ethernet address of a group (RFC 2464 section 7).
constexpr MacAddress group_mac(IpAddress group) {
  const auto byte = [&](unsigned shift) { return static_cast<std::uint8_t>(group.low >> shift); };
  return {{0x33, 0x33, byte(24), byte(16), byte(8), byte(0)}};
}

struct Ipv6Header {
  IpAddress source;
  IpAddress destination;
  IpProtocol protocol = IpProtocol::kTcp;
  Ecn ecn = Ecn::kNotCapable;
  std::uint8_t dscp = 0;  // 0-63; the upper six bits of the traffic class.
  std::uint8_t hop_limit = 64;
  std::uint32_t flow_label = 0;     // 20 bits.
  std::uint16_t payload_bytes = 0;  // All after these 40 bytes.
};

inline IpAddress load_ipv6_address(const std::byte* p) noexcept {
  return {load_be64(p), load_be64(p + 8)};
}
inline void store_ipv6_address(std::byte* p, IpAddress address) noexcept {
  store_be64(p, address.high);
  store_be64(p + 8, address.low);
}

// Skips extension headers (RFC 8200 section 4): on entry header.protocol is the first one's number,
// afterwards the payload's, and header.header_bytes includes them. False: the packet must be
// dropped, because it is a fragment, is to be routed on, carries an option that the sender wants
// understood, or has more headers than any use needs. `packet` begins at the IP header and holds
// all headers, without Ethernet padding.
bool skip_extension_headers(std::span<const std::byte> packet, IpHeader& header) noexcept;

// `head` begins at the IP header and holds at least all of it; `packet_bytes` is the size of the
// frame from there on, in all its pieces, padding included.
inline bool parse_ipv6(std::span<const std::byte> head, std::size_t packet_bytes,
                       IpHeader& header) noexcept {
  if (head.size() < kIpv6Bytes) [[unlikely]]
    return false;
  const std::byte* p = head.data();
  const std::uint32_t first = load_be32(p);
  header.total_bytes = static_cast<std::uint32_t>(kIpv6Bytes + load_be16(p + 4));
  header.source = load_ipv6_address(p + 8);
  header.destination = load_ipv6_address(p + 24);
  // An IPv4 address in an IPv6 header would pass for a host of the other family.
  const bool bad = first >> 28 != 6 || header.total_bytes > packet_bytes || header.source.is_v4() ||
                   header.destination.is_v4();
  if (bad) [[unlikely]]
    return false;
  header.dscp = static_cast<std::uint8_t>(first >> 22 & 0x3fU);
  header.ecn = Ecn{static_cast<std::uint8_t>(first >> 20 & 3U)};
  header.flow_label = first & 0xfffffU;
  header.protocol = IpProtocol{load_u8(p + 6)};
  header.hop_limit = load_u8(p + 7);
  header.header_bytes = kIpv6Bytes;
  if (header.protocol == IpProtocol::kTcp || header.protocol == IpProtocol::kIcmpv6) [[likely]]
    return true;
  return skip_extension_headers(head.first(std::min<std::size_t>(head.size(), header.total_bytes)),
                                header);
}

// Writes and returns kIpv6Bytes.
inline std::size_t emit_ipv6(const Ipv6Header& header, std::byte* out) noexcept {
  const auto traffic_class =
      static_cast<std::uint32_t>((header.dscp << 2) | static_cast<std::uint8_t>(header.ecn));
  store_be32(out, 6U << 28 | traffic_class << 20 | (header.flow_label & 0xfffffU));
  store_be16(out + 4, header.payload_bytes);
  store_u8(out + 6, static_cast<std::uint8_t>(header.protocol));
  store_u8(out + 7, header.hop_limit);
  store_ipv6_address(out + 8, header.source);
  store_ipv6_address(out + 24, header.destination);
  return kIpv6Bytes;
}

}  // namespace ztcp::wire
