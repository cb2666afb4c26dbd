// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Addresses as values. Numbers are in host order so that masks and ranges read naturally.
#pragma once

#include <array>
#include <cassert>
#include <compare>
#include <cstdint>
#include <cstring>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

namespace ztcp {

struct MacAddress {
  std::array<std::uint8_t, 6> bytes{};
  // Two loads for each address: the compiler compares arrays by a call, and every frame needs two
  // comparisons.
  friend bool operator==(const MacAddress& a, const MacAddress& b) {
    std::uint32_t first_a = 0;
    std::uint32_t first_b = 0;
    std::uint16_t last_a = 0;
    std::uint16_t last_b = 0;
    std::memcpy(&first_a, a.bytes.data(), sizeof first_a);
    std::memcpy(&first_b, b.bytes.data(), sizeof first_b);
    std::memcpy(&last_a, a.bytes.data() + sizeof first_a, sizeof last_a);
    std::memcpy(&last_b, b.bytes.data() + sizeof first_b, sizeof last_b);
    return first_a == first_b && last_a == last_b;
  }
};
inline constexpr MacAddress kBroadcastMac{{0xff, 0xff, 0xff, 0xff, 0xff, 0xff}};
// A single host's address: not a group address (broadcast included), not zero.
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
  // Whether `a` may be the address of a single host, this one included (RFC 1122 section 3.2.1.3):
  // not "this network", not loopback, multicast, reserved or limited broadcast, nor this subnet's
  // own or broadcast address, which /31 and /32 don't have (RFC 3021).
  bool may_be_host(Ipv4Address a) const {
    const std::uint32_t net = a.value >> 24;
    if (net == 0 || net == 127 || net >= 224) return false;
    const std::uint32_t host = a.value & ~mask();
    return length > 30 || !contains(a) || (host != 0 && host != ~mask());
  }
  friend bool operator==(const Ipv4Prefix&, const Ipv4Prefix&) = default;
};

// An address of either family, IPv4 as ::ffff:a.b.c.d (RFC 4291 section 2.5.5.2): tables, handles
// and log lines use it to name a host. It has no zone: fe80::1 is unique on one link only, and each
// host numbers its links itself (RFC 4007 section 6), so a peer's zone means nothing here. Tables
// are kept per NIC, which is a link; code that opens a socket adds the index of its own interface.
struct IpAddress {
  std::uint64_t high = 0;  // The first eight bytes.
  std::uint64_t low = 0;

  constexpr IpAddress() = default;  // "::", the unspecified address.
  constexpr IpAddress(std::uint64_t first_half, std::uint64_t second_half)
      : high(first_half), low(second_half) {}
  constexpr IpAddress(Ipv4Address v4) : low(kV4Mapped << 32 | v4.value) {}  // NOLINT: on purpose.

  constexpr bool is_v4() const { return high == 0 && low >> 32 == kV4Mapped; }
  constexpr Ipv4Address v4() const {
    assert(is_v4());
    return {static_cast<std::uint32_t>(low)};
  }
  constexpr bool is_multicast() const {
    return is_v4() ? v4().value >> 28 == 0xe : high >> 56 == 0xff;
  }
  // fe80::/10, valid on one link alone (RFC 4291 section 2.5.6).
  constexpr bool is_link_local_v6() const { return high >> 54 == 0xfe80 >> 6; }
  // is_link_local_v6(), or 169.254.0.0/16 (RFC 3927): addresses that hosts assign themselves.
  constexpr bool is_link_local() const {
    return is_v4() ? v4().value >> 16 == 0xa9fe : is_link_local_v6();
  }
  friend constexpr auto operator<=>(const IpAddress&, const IpAddress&) = default;

 private:
  static constexpr std::uint64_t kV4Mapped = 0xffff;
};

// An interface's own address, of either family, and the length of its network's prefix.
struct IpPrefix {
  IpAddress address;
  std::uint8_t length = 0;  // 0-32 for IPv4, 0-128 for IPv6.

  constexpr IpPrefix() = default;
  constexpr IpPrefix(IpAddress own, std::uint8_t bits) : address(own), length(bits) {}
  constexpr IpPrefix(const Ipv4Prefix& v4)  // NOLINT: on purpose, as in IpAddress.
      : address(v4.address), length(v4.length) {}

  constexpr Ipv4Prefix v4() const { return {address.v4(), length}; }
  // Whether `other` is of the same family and network.
  bool contains(IpAddress other) const;
  // Whether `other`, of the same family, may be the address of a single host; for IPv6: not
  // unspecified, loopback or multicast (RFC 4291 section 2.4).
  bool may_be_host(IpAddress other) const;
  friend constexpr auto operator<=>(const IpPrefix&, const IpPrefix&) = default;
};

struct Endpoint {
  IpAddress address;
  std::uint16_t port = 0;  // Host order.
  friend auto operator<=>(const Endpoint&, const Endpoint&) = default;
};

// Text forms. Parsers accept exactly the canonical form ("10.77.1.10/24", "52:54:00:77:01:0a",
// case-insensitive MAC) and nothing around it. For IPv6 they accept every form of RFC 4291 section
// 2.2; to_string() writes that of RFC 5952: "2001:db8::1", "[2001:db8::1]:7471".
std::optional<MacAddress> parse_mac(std::string_view text);
std::optional<Ipv4Address> parse_ipv4(std::string_view text);
std::optional<Ipv4Prefix> parse_ipv4_prefix(std::string_view text);
std::optional<IpAddress> parse_ip(std::string_view text);
std::optional<IpPrefix> parse_ip_prefix(std::string_view text);  // "2001:db8::1/64"
std::string to_string(const MacAddress& mac);
std::string to_string(Ipv4Address address);
std::string to_string(IpAddress address);
std::string to_string(const Ipv4Prefix& prefix);
std::string to_string(const IpPrefix& prefix);
std::string to_string(const Endpoint& endpoint);

}  // namespace ztcp
