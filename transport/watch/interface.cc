// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/watch/interface.h"

#include <algorithm>
#include <arpa/inet.h>
#include <array>
#include <cstdint>
#include <fstream>
#include <ifaddrs.h>
#include <limits>
#include <net/if.h>
#include <netinet/in.h>
#include <sstream>

namespace ztcp::watch {
namespace {

// "=eth0,eth1" exactly those, "eth,ib" those that begin so, "^docker" all but those. A port after a
// colon is not for us.
bool matches(std::string_view rule, std::string_view name) {
  const bool excludes = rule.starts_with('^');
  if (excludes) rule.remove_prefix(1);
  const bool exact = rule.starts_with('=');
  if (exact) rule.remove_prefix(1);
  bool any = false;
  while (!rule.empty()) {
    const std::size_t comma = std::min(rule.find(','), rule.size());
    std::string_view stem = rule.substr(0, comma);
    stem = stem.substr(0, stem.find(':'));
    any |= !stem.empty() && (exact ? name == stem : name.starts_with(stem));
    rule.remove_prefix(std::min(comma + 1, rule.size()));
  }
  return any != excludes;
}

bool is_of_containers(std::string_view name) {
  constexpr std::array<std::string_view, 4> kBridges = {"docker", "virbr", "veth", "br-"};
  return std::any_of(kBridges.begin(), kBridges.end(),
                     [&](std::string_view prefix) { return name.starts_with(prefix); });
}

}  // namespace

std::vector<Interface> interfaces() {
  std::vector<Interface> out;
  ifaddrs* first = nullptr;
  if (getifaddrs(&first) != 0) return out;
  for (const ifaddrs* at = first; at != nullptr; at = at->ifa_next) {
    if (at->ifa_addr == nullptr || at->ifa_addr->sa_family != AF_INET) continue;
    if ((at->ifa_flags & IFF_UP) == 0) continue;
    const auto* address = reinterpret_cast<const sockaddr_in*>(at->ifa_addr);
    out.push_back({.name = at->ifa_name,
                   .address = {ntohl(address->sin_addr.s_addr)},
                   .is_loopback = (at->ifa_flags & IFF_LOOPBACK) != 0});
  }
  freeifaddrs(first);
  return out;
}

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

std::optional<Ipv4Address> choose_address(std::string_view wish, std::string_view nccl,
                                          std::string_view default_route,
                                          std::span<const Interface> all) {
  const auto first = [&](auto&& fits) -> std::optional<Ipv4Address> {
    const auto found = std::find_if(all.begin(), all.end(), fits);
    if (found == all.end()) return std::nullopt;
    return found->address;
  };
  if (wish != "auto") return first([&](const Interface& i) { return i.name == wish; });
  if (!nccl.empty())
    return first([&](const Interface& i) {
      // Loopback is for those who ask for it.
      return matches(nccl, i.name) && !(i.is_loopback && nccl.starts_with('^'));
    });
  if (const auto routed = first([&](const Interface& i) { return i.name == default_route; }))
    return routed;
  if (const auto any =
          first([](const Interface& i) { return !i.is_loopback && !is_of_containers(i.name); }))
    return any;
  return first([](const Interface& i) { return i.is_loopback; });
}

}  // namespace ztcp::watch
