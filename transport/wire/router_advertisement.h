// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Router solicitations and advertisements (RFC 4861 sections 4.1, 4.2, 6.1.2), with the preference
// of RFC 4191. A host with a configured address and MTU needs these parts alone.
#pragma once

#include <chrono>
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

struct RouterAdvertisement {
  Duration lifetime{};  // Zero: it is no default router.
  RouterPreference preference = RouterPreference::kMedium;
};

inline constexpr std::size_t kRouterAdvertisementBytes = 16;  // Without options.
inline constexpr std::size_t kRouterSolicitationBytes = 8;

inline bool is_router_advertisement(std::span<const std::byte> message) noexcept {
  return !message.empty() && icmpv6_type(message) == Icmpv6Type::kRouterAdvertisement;
}

// `message` is a whole router advertisement with a verified checksum. nullopt for all that RFC 4861
// section 6.1.2 has a host discard. Extension headers have no use here.
inline std::optional<RouterAdvertisement> parse_router_advertisement(
    const IpHeader& ip, std::span<const std::byte> message) noexcept {
  if (message.size() < kRouterAdvertisementBytes || ip.header_bytes != kIpv6Bytes ||
      ip.hop_limit != kNdpHopLimit || !ip.source.is_link_local_v6() ||
      load_u8(message.data() + 1) != 0)
    return std::nullopt;
  std::optional<MacAddress> ignored;  // The router is asked for it.
  if (!find_mac_option(message.subspan(kRouterAdvertisementBytes), kSourceMac, ignored))
    return std::nullopt;
  RouterAdvertisement result;
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
