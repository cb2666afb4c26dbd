// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The fields that IPv4 and IPv6 headers have in common: a received packet of either family.
#pragma once

#include <cstdint>

#include "core/address.h"

namespace ztcp::wire {

// Any value may arrive; only these are handled.
enum class IpProtocol : std::uint8_t { kIcmp = 1, kTcp = 6, kIcmpv6 = 58 };

// RFC 3168 section 5.
enum class Ecn : std::uint8_t { kNotCapable = 0, kEct1 = 1, kEct0 = 2, kCongestion = 3 };

struct IpHeader {
  IpAddress source;
  IpAddress destination;
  IpProtocol protocol = IpProtocol::kTcp;  // IPv6: of the payload after the extension headers.
  Ecn ecn = Ecn::kNotCapable;
  std::uint8_t dscp = 0;           // 0-63.
  std::uint8_t hop_limit = 0;      // IPv4: time to live.
  std::uint16_t header_bytes = 0;  // With options or extension headers.
  std::uint32_t total_bytes = 0;   // Header and payload.
  std::uint32_t flow_label = 0;    // IPv6: 20 bits.
};

}  // namespace ztcp::wire
