// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Addresses as values. IPv4 numbers are in host order so that masks and ranges read naturally.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace ztcp {

struct MacAddress {
  std::array<std::uint8_t, 6> bytes{};
  friend bool operator==(const MacAddress&, const MacAddress&) = default;
};
inline constexpr MacAddress kBroadcastMac{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
// May be one host's: neither a group's, of which broadcast is one, nor zero.
inline bool is_station(const MacAddress& mac) {
  return (mac.bytes[0] & 1U) == 0 && mac != MacAddress{};
}

struct Ipv4Address {
  std::uint32_t value = 0;  // Host order: 10.0.0.1 is 0x0a000001.
  friend auto operator<=>(const Ipv4Address&, const Ipv4Address&) = default;
};

struct Ipv4Prefix {
  Ipv4Address address;       // The host's own address, not the network's.
  std::uint8_t length = 32;  // 0-32.
  std::uint32_t mask() const { return length == 0 ? 0U : ~0U << (32U - length); }
  bool contains(Ipv4Address a) const { return ((a.value ^ address.value) & mask()) == 0; }
  // Whether one host, and not this one's loopback, may have the address (RFC 1122 section 3.2.1.3):
  // not "this network", multicast, the reserved rest with the limited broadcast, nor this subnet's
  // own or broadcast address, which /31 and /32 don't have (RFC 3021).
  bool may_be_host(Ipv4Address a) const {
    const std::uint32_t net = a.value >> 24;
    if (net == 0 || net == 127 || net >= 224) return false;
    const std::uint32_t host = a.value & ~mask();
    return length > 30 || !contains(a) || (host != 0 && host != ~mask());
  }
  friend bool operator==(const Ipv4Prefix&, const Ipv4Prefix&) = default;
};

struct Endpoint {
  Ipv4Address address;
  std::uint16_t port = 0;  // Host order.
  friend auto operator<=>(const Endpoint&, const Endpoint&) = default;
};

// Text forms. Parsers accept exactly the canonical form ("10.77.1.10/24", "52:54:00:77:01:0a",
// case-insensitive MAC) and nothing around it.
std::optional<MacAddress> parse_mac(std::string_view text);
std::optional<Ipv4Address> parse_ipv4(std::string_view text);
std::optional<Ipv4Prefix> parse_ipv4_prefix(std::string_view text);
std::string to_string(const MacAddress& mac);
std::string to_string(Ipv4Address address);
std::string to_string(const Ipv4Prefix& prefix);
std::string to_string(const Endpoint& endpoint);

}  // namespace ztcp
