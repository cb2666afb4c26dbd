// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Router advertisements with prefixes, as a router writes them (RFC 4861 sections 4.2, 4.6.2).
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <initializer_list>
#include <span>
#include <vector>

#include "core/address.h"
#include "core/frame.h"
#include "transport/wire/ethernet.h"
#include "transport/wire/icmpv6.h"
#include "transport/wire/ipv6.h"
#include "transport/wire/router_advertisement.h"

namespace ztcp::test {

inline constexpr std::uint8_t kOnLinkFlag = 0x80;
inline constexpr std::uint8_t kAutonomousFlag = 0x40;

struct PrefixOption {
  IpAddress prefix;
  std::uint32_t valid_s = 86400;
  std::uint32_t preferred_s = 14400;
  std::uint8_t flags = kOnLinkFlag | kAutonomousFlag;
  std::uint8_t length = 64;
};

inline std::vector<std::byte> prefix_option(const PrefixOption& from) {
  std::vector<std::byte> option(wire::kPrefixOptionBytes);
  wire::store_u8(option.data(), 3);
  wire::store_u8(option.data() + 1, 4);
  wire::store_u8(option.data() + 2, from.length);
  wire::store_u8(option.data() + 3, from.flags);
  wire::store_be32(option.data() + 4, from.valid_s);
  wire::store_be32(option.data() + 8, from.preferred_s);
  wire::store_ipv6_address(option.data() + 16, from.prefix);
  return option;
}

// Without a checksum. `lifetime_s`: as a default router.
inline std::vector<std::byte> router_advertisement(std::initializer_list<PrefixOption> prefixes,
                                                   std::uint16_t lifetime_s = 1800) {
  std::vector<std::byte> message(wire::kRouterAdvertisementBytes);
  wire::store_u8(message.data(), 134);
  wire::store_be16(message.data() + 6, lifetime_s);
  for (const PrefixOption& prefix : prefixes) {
    const auto option = prefix_option(prefix);
    message.insert(message.end(), option.begin(), option.end());
  }
  return message;
}

// The message of `router` as a frame to all hosts.
inline TxFrame frame_of(std::span<const std::byte> message, IpAddress router, MacAddress mac) {
  TxFrame frame{};
  std::byte* const ip =
      frame.header.data() + wire::emit_ethernet({.destination = wire::group_mac(wire::kAllNodes),
                                                 .source = mac,
                                                 .vlan_id = 0,
                                                 .type = wire::EtherType::kIpv6},
                                                frame.header.data());
  frame.l2_bytes = wire::kEthernetBytes;
  frame.l3_bytes = wire::kIpv6Bytes;
  wire::emit_ipv6({.source = router,
                   .destination = wire::kAllNodes,
                   .protocol = wire::IpProtocol::kIcmpv6,
                   .hop_limit = wire::kNdpHopLimit,
                   .payload_bytes = static_cast<std::uint16_t>(message.size())},
                  ip);
  std::byte* const at = ip + wire::kIpv6Bytes;
  std::memcpy(at, message.data(), message.size());
  wire::fill_icmpv6_checksum(router, wire::kAllNodes, {at, message.size()});
  frame.header_bytes =
      static_cast<std::uint16_t>(wire::kEthernetBytes + wire::kIpv6Bytes + message.size());
  return frame;
}

}  // namespace ztcp::test
