// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Router solicitations and advertisements (RFC 4861 sections 4.1, 4.2, 4.6.2, 6.1.2), with the
// preference of RFC 4191. The MTU and the timers of an advertisement are not used.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "core/clock.h"
#include "transport/wire/byte_order.h"
#include "transport/wire/icmpv6.h"
#include "transport/wire/ip.h"
#include "transport/wire/ndp.h"

namespace ztcp::wire {

enum class RouterPreference : std::uint8_t { kLow, kMedium, kHigh };

// A prefix out of which hosts form addresses (RFC 4861 section 4.6.2, with the A flag). An infinite
// lifetime is one of 136 years.
struct AdvertisedPrefix {
  IpPrefix prefix;
  bool is_on_link = false;  // False: its hosts may be behind the router.
  Duration valid{};
  Duration preferred{};
};

struct RouterAdvertisement {
  static constexpr std::size_t kMostPrefixes = 8;

  Duration lifetime{};  // Zero: it is no default router.
  RouterPreference preference = RouterPreference::kMedium;
  std::array<AdvertisedPrefix, kMostPrefixes> prefixes{};  // In their order; later ones are left
                                                           // out.
  std::size_t prefix_count = 0;
};

inline constexpr std::size_t kRouterAdvertisementBytes = 16;  // Without options.
inline constexpr std::size_t kPrefixOptionBytes = 32;
inline constexpr std::size_t kRouterSolicitationBytes = 8;

inline bool is_router_advertisement(std::span<const std::byte> message) noexcept {
  return !message.empty() && icmpv6_type(message) == Icmpv6Type::kRouterAdvertisement;
}

// Nothing for an option of another kind, and for prefixes without the A flag.
inline std::optional<AdvertisedPrefix> parse_prefix_option(
    std::uint8_t type, std::span<const std::byte> option) noexcept {
  constexpr std::uint8_t kPrefixInformation = 3;
  constexpr unsigned kOnLink = 0x80;
  constexpr unsigned kAutonomous = 0x40;
  if (type != kPrefixInformation || option.size() != kPrefixOptionBytes) return std::nullopt;
  const unsigned flags = load_u8(option.data() + 3);
  if ((flags & kAutonomous) == 0) return std::nullopt;
  return AdvertisedPrefix{
      .prefix = {load_ipv6_address(option.data() + 16), load_u8(option.data() + 2)},
      .is_on_link = (flags & kOnLink) != 0,
      .valid = std::chrono::seconds(load_be32(option.data() + 4)),
      .preferred = std::chrono::seconds(load_be32(option.data() + 8))};
}

// `message` is a whole router advertisement with a verified checksum. nullopt for all that RFC 4861
// section 6.1.2 has a host discard. Extension headers have no use here.
inline std::optional<RouterAdvertisement> parse_router_advertisement(
    const IpHeader& ip, std::span<const std::byte> message) noexcept {
  if (message.size() < kRouterAdvertisementBytes || ip.header_bytes != kIpv6Bytes ||
      ip.hop_limit != kNdpHopLimit || !ip.source.is_link_local_v6() ||
      load_u8(message.data() + 1) != 0)
    return std::nullopt;
  RouterAdvertisement result;
  const bool is_whole =
      for_each_ndp_option(message.subspan(kRouterAdvertisementBytes),
                          [&](std::uint8_t type, std::span<const std::byte> option) {
                            // The router's MAC address is not taken from here: the router is asked
                            // for it.
                            const auto prefix = parse_prefix_option(type, option);
                            if (prefix && result.prefix_count < result.prefixes.size())
                              result.prefixes[result.prefix_count++] = *prefix;
                          });
  if (!is_whole) return std::nullopt;
  result.lifetime = std::chrono::seconds(load_be16(message.data() + 6));
  // RFC 4191 section 2.2: the reserved value counts as medium.
  switch (load_u8(message.data() + 5) >> 3 & 3U) {
    case 1:
      result.preference = RouterPreference::kHigh;
      break;
    case 3:
      result.preference = RouterPreference::kLow;
      break;
    default:
      break;
  }
  return result;
}

// Writes the message with its checksum, without options: its source is the unspecified address,
// which RFC 4429 section 3.2 asks of a host that still probes its own. Returns
// kRouterSolicitationBytes.
inline std::size_t emit_router_solicitation(std::byte* out) noexcept {
  std::memset(out, 0, kRouterSolicitationBytes);
  store_u8(out, static_cast<std::uint8_t>(Icmpv6Type::kRouterSolicitation));
  fill_icmpv6_checksum(IpAddress(), kAllRouters, {out, kRouterSolicitationBytes});
  return kRouterSolicitationBytes;
}

}  // namespace ztcp::wire
