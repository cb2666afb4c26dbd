// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Ethernet II header with at most one 802.1Q tag.
#pragma once

#include <cstdint>
#include <cstring>
#include <span>

#include "core/address.h"
#include "transport/wire/byte_order.h"

namespace ztcp::wire {

// Any 16-bit value may arrive; only these are handled.
enum class EtherType : std::uint16_t {
  kIpv4 = 0x0800,
  kArp = 0x0806,
  kVlan = 0x8100,
  kIpv6 = 0x86dd,
};

inline constexpr std::size_t kEthernetBytes = 14;
inline constexpr std::size_t kVlanTagBytes = 4;

struct EthernetHeader {
  MacAddress destination;
  MacAddress source;
  std::uint16_t vlan_id = 0;  // 0: untagged, or tagged with priority only (802.1Q 9.6).
  EtherType type = EtherType::kIpv4;
  std::uint8_t header_bytes = kEthernetBytes;  // Set by parse; emit uses vlan_id.
  std::uint8_t priority = 0;                   // 0-7, of a tagged frame. Not read by parse.
};

// The parsers of the receive path fill in `header` in place and return whether it is valid: a
// returned value would be built, copied and waited for in each layer.
inline bool parse_ethernet(std::span<const std::byte> frame, EthernetHeader& header) noexcept {
  if (frame.size() < kEthernetBytes) [[unlikely]]
    return false;
  std::memcpy(header.destination.bytes.data(), frame.data(), 6);
  std::memcpy(header.source.bytes.data(), frame.data() + 6, 6);
  header.type = EtherType{load_be16(frame.data() + 12)};
  header.vlan_id = 0;
  header.header_bytes = kEthernetBytes;
  if (header.type == EtherType::kVlan) [[unlikely]] {
    if (frame.size() < kEthernetBytes + kVlanTagBytes) return false;
    header.vlan_id = load_be16(frame.data() + 14) & 0x0fff;
    header.type = EtherType{load_be16(frame.data() + 16)};
    header.header_bytes = kEthernetBytes + kVlanTagBytes;
  }
  return true;
}

// Writes 14 bytes, or 18 when header.vlan_id is not 0, and returns their number.
inline std::size_t emit_ethernet(const EthernetHeader& header, std::byte* out) noexcept {
  std::memcpy(out, header.destination.bytes.data(), 6);
  std::memcpy(out + 6, header.source.bytes.data(), 6);
  std::size_t at = 12;
  if (header.vlan_id != 0) {
    store_be16(out + at, static_cast<std::uint16_t>(EtherType::kVlan));
    store_be16(out + at + 2, static_cast<std::uint16_t>(header.priority << 13 | header.vlan_id));
    at += kVlanTagBytes;
  }
  store_be16(out + at, static_cast<std::uint16_t>(header.type));
  return at + 2;
}

}  // namespace ztcp::wire
