// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tests/scripts/names.h"

#include <utility>
#include <vector>

#include <fmt/format.h>

#include "tests/scripts/segment_text.h"
#include "tests/unit/tcp/harness.h"
#include "transport/wire/ipv6.h"

namespace ztcp::tcp::test {
namespace {

using Addresses = std::vector<std::pair<std::string, IpAddress>>;
using Macs = std::vector<std::pair<std::string, MacAddress>>;

// The first name of an address is the one that is written.
Addresses addresses(bool is_ipv6, IpAddress own) {
  if (!is_ipv6)
    return {{"us", own},
            {"peer", kPeerIp},
            {"other", Ipv4Address{0x0a000009}},
            {"router", Ipv4Address{0x0a0000fe}}};
  return {{"none", IpAddress()},
          {"us", own},
          {"peer", kPeerIpv6},
          {"other", {0xfd00ULL << 48, 0x1'0009}},
          {"router", {0xfe80ULL << 48, 0xa}},
          {"router2", {0xfe80ULL << 48, 0xb}},
          {"all", wire::kAllNodes},
          {"routers", wire::kAllRouters},
          {"listeners", wire::kMldRouters},
          {"our-group", wire::solicited_node(own)},
          {"peer-group", wire::solicited_node(kPeerIpv6)}};
}

const Macs& macs() {
  static const Macs kMacs{{"us", kOurMac},
                          {"peer", kPeerMac},
                          {"other", {{2, 0, 0, 0, 0, 9}}},
                          {"router", {{2, 0, 0, 0, 0, 0xa}}},
                          {"router2", {{2, 0, 0, 0, 0, 0xb}}},
                          {"all", kBroadcastMac}};
  return kMacs;
}

}  // namespace

IpAddress Names::address(const std::string& text) const {
  for (const auto& [name, address] : addresses(is_ipv6_, own_))
    if (name == text) return address;
  const auto address = parse_ip(text);
  if (!address || (!is_ipv6_ && !address->is_v4()))
    throw ScriptError(fmt::format("\"{}\" is no address of the family", text));
  return *address;
}

MacAddress Names::mac(const std::string& text) {
  for (const auto& [name, mac] : macs())
    if (name == text) return mac;
  if (const auto mac = parse_mac(text)) return *mac;
  throw ScriptError(fmt::format("\"{}\" is no MAC address", text));
}

std::string Names::text_of(IpAddress address) const {
  for (const auto& [name, known] : addresses(is_ipv6_, own_))
    if (known == address) return name;
  return to_string(address);
}

std::string Names::text_of(const MacAddress& mac) {
  for (const auto& [name, known] : macs())
    if (known == mac) return name;
  return to_string(mac);
}

}  // namespace ztcp::tcp::test
