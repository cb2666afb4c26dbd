// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/watch/interface.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <fstream>
#include <limits>
#include <sstream>

#include "core/socket_ifname.h"

namespace ztcp::watch {
namespace {

bool is_of_containers(std::string_view name) {
  constexpr std::array<std::string_view, 4> kBridges = {"docker", "virbr", "veth", "br-"};
  return std::any_of(kBridges.begin(), kBridges.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

// 127.0.0.0/8 and ::1.
bool is_of_every_host(const LocalAddress& one) {
  const IpAddress address = one.prefix.address;
  return address.is_v4() ? address.v4().value >> 24 == 127 : address == IpAddress(0, 1);
}

bool is_usable(const LocalAddress& one, std::string_view family) {
  const IpAddress address = one.prefix.address;
  if (!one.is_up || one.state != AddressState::kUsable || address.is_link_local_v6()) return false;
  return family == "AF_INET" ? address.is_v4() : family != "AF_INET6" || !address.is_v4();
}

std::string default_interface_v4(std::string_view routes) {
  std::istringstream lines{std::string(routes)};
  std::string line;
  std::getline(lines, line);  // Headings.
  std::string best;
  std::uint32_t best_metric = std::numeric_limits<std::uint32_t>::max();
  while (std::getline(lines, line)) {
    std::istringstream fields(line);
    std::string name;
    std::string destination;
    std::string gateway;
    std::string flags;
    std::string mask;
    std::uint32_t references = 0;
    std::uint32_t uses = 0;
    std::uint32_t metric = 0;
    fields >> name >> destination >> gateway >> flags >> references >> uses >> metric >> mask;
    if (!fields || destination != "00000000" || mask != "00000000" || metric >= best_metric)
      continue;
    best = name;
    best_metric = metric;
  }
  return best;
}

std::string default_interface_v6(std::string_view routes) {
  constexpr std::uint32_t kReject = 0x200;  // RTF_REJECT: packets are refused.
  const std::string any(32, '0');
  std::istringstream lines{std::string(routes)};
  std::string line;
  std::string best;
  std::uint32_t best_metric = std::numeric_limits<std::uint32_t>::max();
  while (std::getline(lines, line)) {
    std::istringstream fields(line);
    std::string destination;
    std::string length;
    std::string source;
    std::string source_length;
    std::string next_hop;
    std::uint32_t metric = 0;
    std::uint32_t references = 0;
    std::uint32_t uses = 0;
    std::uint32_t flags = 0;
    std::string name;
    fields >> destination >> length >> source >> source_length >> next_hop;
    fields >> std::hex >> metric >> references >> uses >> flags >> name;
    if (!fields || destination != any || length != "00" || source_length != "00" ||
        (flags & kReject) != 0 || metric >= best_metric)
      continue;
    best = name;
    best_metric = metric;
  }
  return best;
}

std::string content(const char* path) {
  std::ifstream file(path);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

}  // namespace

std::string default_interface(std::string_view routes, std::string_view routes_v6) {
  std::string v4 = default_interface_v4(routes);
  return v4.empty() ? default_interface_v6(routes_v6) : v4;
}

std::string default_interface() {
  return default_interface(content("/proc/net/route"), content("/proc/net/ipv6_route"));
}

std::optional<IpAddress> choose_address(std::string_view wanted, const NcclSockets& nccl,
                                        std::string_view default_route,
                                        std::span<const LocalAddress> all) {
  const auto first = [&](auto&& fits) -> std::optional<IpAddress> {
    const LocalAddress* best = nullptr;
    for (const LocalAddress& one : all) {
      if (!is_usable(one, nccl.family) || !fits(one)) continue;
      if (one.prefix.address.is_v4()) return one.prefix.address;
      if (best == nullptr) best = &one;
    }
    return best != nullptr ? std::optional(best->prefix.address) : std::nullopt;
  };
  if (wanted != "auto") return first([&](const LocalAddress& i) { return i.interface == wanted; });
  if (says_interfaces(nccl.ifname)) {
    const auto is_named = [&](const LocalAddress& i) {
      // An exclusion list ("^docker") does not select loopback; only a list of names does.
      return fits_socket_ifname(nccl.ifname, i.interface) &&
             !(i.is_loopback && nccl.ifname.starts_with('^'));
    };
    // A host to which its address is routed has that address on loopback, after 127.0.0.1.
    const auto routed =
        first([&](const LocalAddress& i) { return is_named(i) && !is_of_every_host(i); });
    return routed ? routed : first(is_named);
  }
  if (const auto routed =
          first([&](const LocalAddress& i) { return i.interface == default_route; }))
    return routed;
  if (const auto any = first(
          [](const LocalAddress& i) { return !i.is_loopback && !is_of_containers(i.interface); }))
    return any;
  return first([](const LocalAddress& i) { return i.is_loopback; });
}

}  // namespace ztcp::watch
