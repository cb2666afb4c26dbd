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

// 127.0.0.0/8; for IPv4 addresses alone.
bool is_of_every_host(const LocalAddress& one) {
  return one.prefix.address.v4().value >> 24 == 127;
}

}  // namespace

std::string default_interface(std::string_view routes) {
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

std::string default_interface() {
  std::ifstream file("/proc/net/route");
  std::ostringstream text;
  text << file.rdbuf();
  return default_interface(text.str());
}

std::optional<Ipv4Address> choose_address(std::string_view wanted, std::string_view nccl,
                                          std::string_view default_route,
                                          std::span<const LocalAddress> all) {
  const auto first = [&](auto&& fits) -> std::optional<Ipv4Address> {
    const auto found = std::find_if(all.begin(), all.end(), [&](const LocalAddress& one) {
      return one.is_up && one.prefix.address.is_v4() && fits(one);
    });
    if (found == all.end()) return std::nullopt;
    return found->prefix.address.v4();
  };
  if (wanted != "auto") return first([&](const LocalAddress& i) { return i.interface == wanted; });
  if (says_interfaces(nccl)) {
    const auto is_named = [&](const LocalAddress& i) {
      // An exclusion list ("^docker") does not select loopback; only a list of names does.
      return fits_socket_ifname(nccl, i.interface) && !(i.is_loopback && nccl.starts_with('^'));
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
