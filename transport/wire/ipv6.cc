// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/wire/ipv6.h"

namespace ztcp::wire {
namespace {

// RFC 8200 section 4.1 names five before the payload, one of them twice.
constexpr int kMostExtensionHeaders = 6;
constexpr std::size_t kExtensionUnitBytes = 8;

// Next header values.
constexpr std::uint8_t kHopByHop = 0;
constexpr std::uint8_t kRouting = 43;
constexpr std::uint8_t kFragment = 44;
constexpr std::uint8_t kDestinationOptions = 60;

// Whether all options may be skipped (section 4.2): those whose number begins with 00. None needs
// an action here; padding and the router alert (RFC 2711) are among them.
bool may_skip_options(std::span<const std::byte> options) noexcept {
  constexpr std::uint8_t kPad1 = 0;
  for (std::size_t at = 0; at < options.size();) {
    const std::uint8_t type = load_u8(options.data() + at);
    if (type == kPad1) {
      ++at;
      continue;
    }
    if (type >> 6 != 0 || at + 2 > options.size()) return false;
    at += 2U + load_u8(options.data() + at + 1);
    if (at > options.size()) return false;
  }
  return true;
}

}  // namespace

bool skip_extension_headers(std::span<const std::byte> packet, IpHeader& header) noexcept {
  std::size_t offset = kIpv6Bytes;
  auto next = static_cast<std::uint8_t>(header.protocol);
  for (int skipped = 0;; ++skipped) {
    const bool is_extension =
        next == kHopByHop || next == kRouting || next == kFragment || next == kDestinationOptions;
    if (!is_extension) break;
    if (skipped == kMostExtensionHeaders || offset + kExtensionUnitBytes > packet.size())
      return false;
    const std::byte* p = packet.data() + offset;
    std::size_t size = kExtensionUnitBytes * (1U + load_u8(p + 1));
    if (next == kFragment) {
      // A packet in one fragment is whole (section 4.5).
      constexpr std::uint16_t kOffsetAndMore = 0xfff9;
      if ((load_be16(p + 2) & kOffsetAndMore) != 0) return false;
      size = kExtensionUnitBytes;
    }
    if (offset + size > packet.size()) return false;
    // Only the first header may be meant for each hop (section 4.1).
    if (next == kHopByHop && skipped != 0) return false;
    // With no segments left, a routing header of any type is skipped (section 4.4).
    if (next == kRouting && load_u8(p + 3) != 0) return false;
    if ((next == kHopByHop || next == kDestinationOptions) &&
        !may_skip_options(packet.subspan(offset + 2, size - 2)))
      return false;
    next = load_u8(p);
    offset += size;
  }
  header.protocol = IpProtocol{next};
  header.header_bytes = static_cast<std::uint16_t>(offset);
  return true;
}

}  // namespace ztcp::wire
