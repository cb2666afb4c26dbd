// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// ARP for IPv4 over Ethernet (RFC 826).
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <span>

#include "core/address.h"
#include "transport/wire/byte_order.h"

namespace ztcp::wire {

enum class ArpOperation : std::uint16_t { kRequest = 1, kReply = 2 };

inline constexpr std::size_t kArpBytes = 28;

struct ArpPacket {
  ArpOperation operation = ArpOperation::kRequest;
  MacAddress sender_mac;
  Ipv4Address sender_ip;
  MacAddress target_mac;  // Zero in requests.
  Ipv4Address target_ip;
};

// `packet` begins after the Ethernet header; padding after it is ignored. nullopt for other
// hardware or protocol types and operations.
inline std::optional<ArpPacket> parse_arp(std::span<const std::byte> packet) noexcept {
  if (packet.size() < kArpBytes) return std::nullopt;
  const std::byte* p = packet.data();
  constexpr std::uint16_t kEthernet = 1;
  constexpr std::uint16_t kIpv4 = 0x0800;
  constexpr std::uint16_t kSizes = 0x0604;  // 6-byte MACs, 4-byte addresses.
  if (load_be16(p) != kEthernet || load_be16(p + 2) != kIpv4 || load_be16(p + 4) != kSizes)
    return std::nullopt;
  ArpPacket arp;
  arp.operation = ArpOperation{load_be16(p + 6)};
  if (arp.operation != ArpOperation::kRequest && arp.operation != ArpOperation::kReply)
    return std::nullopt;
  std::memcpy(arp.sender_mac.bytes.data(), p + 8, 6);
  arp.sender_ip.value = load_be32(p + 14);
  std::memcpy(arp.target_mac.bytes.data(), p + 18, 6);
  arp.target_ip.value = load_be32(p + 24);
  return arp;
}

// Writes and returns kArpBytes.
inline std::size_t emit_arp(const ArpPacket& arp, std::byte* out) noexcept {
  store_be16(out, 1);
  store_be16(out + 2, 0x0800);
  store_be16(out + 4, 0x0604);
  store_be16(out + 6, static_cast<std::uint16_t>(arp.operation));
  std::memcpy(out + 8, arp.sender_mac.bytes.data(), 6);
  store_be32(out + 14, arp.sender_ip.value);
  std::memcpy(out + 18, arp.target_mac.bytes.data(), 6);
  store_be32(out + 24, arp.target_ip.value);
  return kArpBytes;
}

}  // namespace ztcp::wire
