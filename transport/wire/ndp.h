// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Neighbour solicitations and advertisements (RFC 4861 sections 4.3, 4.4, 7.1), and the report by
// which a host joins the group that its neighbours ask (RFC 3810).
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "core/address.h"
#include "transport/wire/byte_order.h"
#include "transport/wire/icmpv6.h"
#include "transport/wire/ip.h"
#include "transport/wire/ipv6.h"

namespace ztcp::wire {

// A message of either kind.
struct NeighbourMessage {
  bool is_advertisement = false;
  IpAddress target;
  // The sender's MAC address in a solicitation, the target's in an advertisement.
  std::optional<MacAddress> mac{};
  // Flags of an advertisement.
  bool is_router = false;
  bool is_solicited = false;
  bool overrides = false;
};

inline constexpr std::uint8_t kNdpHopLimit = 255;  // Proves that no router forwarded the packet.
inline constexpr std::size_t kNdpBytes = 24;
inline constexpr std::size_t kMacOptionBytes = 8;
inline constexpr std::size_t kEmittedNdpBytes = kNdpBytes + kMacOptionBytes;

inline constexpr std::uint8_t kSourceMac = 1;
inline constexpr std::uint8_t kTargetMac = 2;

// Calls visit(type, option) for each option, its two bytes of type and length included. False: an
// option is empty or truncated.
template <class Visit>
bool for_each_ndp_option(std::span<const std::byte> options, Visit&& visit) noexcept {
  while (!options.empty()) {
    if (options.size() < 2) return false;
    const std::size_t size = 8U * load_u8(options.data() + 1);
    if (size == 0 || size > options.size()) return false;
    visit(load_u8(options.data()), options.first(size));
    options = options.subspan(size);
  }
  return true;
}

// Finds the option `wanted`; other options are skipped. False: an option is empty or truncated.
inline bool find_mac_option(std::span<const std::byte> options, std::uint8_t wanted,
                            std::optional<MacAddress>& mac) noexcept {
  return for_each_ndp_option(options, [&](std::uint8_t type, std::span<const std::byte> option) {
    if (type != wanted || option.size() != kMacOptionBytes) return;
    mac.emplace();
    std::memcpy(mac->bytes.data(), option.data() + 2, mac->bytes.size());
  });
}

// `message` is whole and its checksum has been verified. nullopt for other types, and for all that
// RFC 4861 sections 7.1.1 and 7.1.2 have a host discard. Extension headers have no use here.
inline std::optional<NeighbourMessage> parse_neighbour_message(
    const IpHeader& ip, std::span<const std::byte> message) noexcept {
  if (message.size() < kNdpBytes || ip.header_bytes != kIpv6Bytes || ip.hop_limit != kNdpHopLimit ||
      load_u8(message.data() + 1) != 0)
    return std::nullopt;
  NeighbourMessage result;
  const Icmpv6Type type = icmpv6_type(message);
  result.is_advertisement = type == Icmpv6Type::kNeighbourAdvertisement;
  if (!result.is_advertisement && type != Icmpv6Type::kNeighbourSolicitation) return std::nullopt;
  result.target = load_ipv6_address(message.data() + 8);
  if (result.target.is_multicast() || result.target.is_v4()) return std::nullopt;
  if (!find_mac_option(message.subspan(kNdpBytes),
                       result.is_advertisement ? kTargetMac : kSourceMac, result.mac))
    return std::nullopt;
  if (result.is_advertisement) {
    const std::uint8_t flags = load_u8(message.data() + 4);
    result.is_router = (flags & 0x80U) != 0;
    result.is_solicited = (flags & 0x40U) != 0;
    result.overrides = (flags & 0x20U) != 0;
    if (result.is_solicited && ip.destination.is_multicast()) return std::nullopt;
  } else if (ip.source == IpAddress() &&
             (result.mac || ip.destination != solicited_node(result.target))) {
    return std::nullopt;
  }
  return result;
}

// Writes the message with its checksum; returns kEmittedNdpBytes, or kNdpBytes without a MAC.
inline std::size_t emit_neighbour_message(const NeighbourMessage& message, IpAddress source,
                                          IpAddress destination, std::byte* out) noexcept {
  std::memset(out, 0, kEmittedNdpBytes);
  const Icmpv6Type type = message.is_advertisement ? Icmpv6Type::kNeighbourAdvertisement
                                                   : Icmpv6Type::kNeighbourSolicitation;
  store_u8(out, static_cast<std::uint8_t>(type));
  if (message.is_advertisement)
    store_u8(out + 4, static_cast<std::uint8_t>((message.is_router ? 0x80 : 0) |
                                                (message.is_solicited ? 0x40 : 0) |
                                                (message.overrides ? 0x20 : 0)));
  store_ipv6_address(out + 8, message.target);
  std::size_t size = kNdpBytes;
  if (message.mac) {
    store_u8(out + size, message.is_advertisement ? kTargetMac : kSourceMac);
    store_u8(out + size + 1, 1);
    std::memcpy(out + size + 2, message.mac->bytes.data(), message.mac->bytes.size());
    size += kMacOptionBytes;
  }
  fill_icmpv6_checksum(source, destination, {out, size});
  return size;
}

// Hop-by-hop header with the router alert (RFC 2711), and an MLDv2 report of one group.
inline constexpr std::size_t kMldAlertBytes = 8;
inline constexpr std::size_t kMldReportBytes = 28;

// Writes and returns kMldAlertBytes + kMldReportBytes, which follow the IPv6 header: this host
// listens to `group`. `source` is link-local, or unspecified (RFC 3810 section 5.2.13).
inline std::size_t emit_mld_report(IpAddress group, IpAddress source, std::byte* out) noexcept {
  std::memset(out, 0, kMldAlertBytes + kMldReportBytes);
  store_u8(out, static_cast<std::uint8_t>(IpProtocol::kIcmpv6));
  store_be16(out + 2, 0x0502);  // Router alert, two bytes: zero for MLD.
  store_be16(out + 6, 0x0100);  // Padding of two bytes.
  std::byte* report = out + kMldAlertBytes;
  constexpr std::uint8_t kChangeToExclude = 4;  // Excludes no source: joins the group.
  store_u8(report, static_cast<std::uint8_t>(Icmpv6Type::kMldReport));
  store_be16(report + 6, 1);
  store_u8(report + 8, kChangeToExclude);
  store_ipv6_address(report + 12, group);
  fill_icmpv6_checksum(source, kMldRouters, {report, kMldReportBytes});
  return kMldAlertBytes + kMldReportBytes;
}

// Whether the message asks for reports of `group`: a general query, or one for it (RFC 3810
// section 5.1).
inline bool is_mld_query_for(IpAddress group, const IpHeader& ip,
                             std::span<const std::byte> message) noexcept {
  constexpr std::size_t kQueryBytes = 24;
  if (message.size() < kQueryBytes || icmpv6_type(message) != Icmpv6Type::kMldQuery ||
      ip.hop_limit != 1 || !ip.source.is_link_local_v6())
    return false;
  const IpAddress asked = load_ipv6_address(message.data() + 8);
  return asked == IpAddress() || asked == group;
}

}  // namespace ztcp::wire
