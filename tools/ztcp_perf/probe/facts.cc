// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/probe/facts.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <unordered_map>
#include <utility>

#include <fmt/format.h>

namespace ztcp::perf::probe {
namespace {

using Value = std::function<std::string(const Host&)>;

// The hosts by value; hosts without one (an empty text) are left out.
std::vector<Group> group(const std::vector<Host>& hosts, const Value& value_of) {
  std::vector<Group> groups;
  std::unordered_map<std::string, std::size_t> places;
  for (std::size_t i = 0; i < hosts.size(); ++i) {
    if (!hosts[i].has_facts) continue;
    const std::string value = value_of(hosts[i]);
    if (value.empty()) continue;
    const auto [place, is_new] = places.emplace(value, groups.size());
    if (is_new) groups.push_back({value, {}});
    groups[place->second].hosts.push_back(i);
  }
  std::ranges::stable_sort(groups, std::ranges::greater{},
                           [](const Group& one) { return one.hosts.size(); });
  return groups;
}

std::string names_of_nics(const Host& host) {
  std::string names;
  for (const NicFacts& nic : host.facts.nics) names += (names.empty() ? "" : " ") + nic.name;
  return names.empty() ? "none" : names;
}

// Two names of one machine: their measurements would share its CPUs and NICs.
void find_same_machine(const std::vector<Host>& hosts, std::vector<Difference>& found) {
  for (Group& same : group(hosts, [](const Host& host) { return host.facts.machine; }))
    if (same.hosts.size() > 1)
      found.push_back({"machine", false, {{"one machine", std::move(same.hosts)}}});
}

void compare_clocks(const std::vector<Host>& hosts, std::vector<Difference>& found) {
  std::vector<double> offsets;
  for (const Host& host : hosts)
    if (host.has_facts) offsets.push_back(host.clock_offset_s);
  if (offsets.empty()) return;
  const auto middle = offsets.begin() + static_cast<std::ptrdiff_t>(offsets.size() / 2);
  std::ranges::nth_element(offsets, middle);
  const double median = *middle;
  std::vector<Group> groups = group(hosts, [&](const Host& host) {
    const double away = host.clock_offset_s - median;
    if (std::abs(away) <= kClockToleranceSeconds + host.clock_error_s) return std::string("equal");
    return fmt::format("{:.1f} s {}", std::abs(away), away > 0 ? "ahead" : "behind");
  });
  if (groups.size() > 1) found.push_back({"clock", false, std::move(groups)});
}

}  // namespace

std::vector<Difference> compare(const std::vector<Host>& hosts) {
  std::vector<Difference> found;
  const auto add = [&](std::string what, bool is_fault, const Value& value_of) {
    std::vector<Group> groups = group(hosts, value_of);
    if (groups.size() > 1) found.push_back({std::move(what), is_fault, std::move(groups)});
  };
  add("version", true, [](const Host& host) { return host.facts.version; });
  add("plugin", true, [](const Host& host) { return host.facts.plugin; });
  add("config", true, [](const Host& host) { return host.facts.config; });
  add("NICs", true, names_of_nics);
  std::size_t rails = 0;
  for (const Host& host : hosts) rails = std::max(rails, host.facts.nics.size());
  for (std::size_t rail = 0; rail < rails; ++rail) {
    add(fmt::format("MTU of rail {}", rail), true, [rail](const Host& host) {
      const bool is_known = rail < host.facts.nics.size() && host.facts.nics[rail].mtu_bytes != 0;
      return is_known ? std::to_string(host.facts.nics[rail].mtu_bytes) : "";
    });
    add(fmt::format("speed of rail {}", rail), true, [rail](const Host& host) {
      if (rail >= host.facts.nics.size()) return std::string();
      return fmt::format("{} Mb/s", host.facts.nics[rail].speed_mbps);
    });
  }
  add("kernel", false, [](const Host& host) { return host.facts.kernel; });
  add("CPUs", false, [](const Host& host) { return std::to_string(host.facts.cpus); });
  compare_clocks(hosts, found);
  find_same_machine(hosts, found);
  return found;
}

std::string names_of(const std::vector<std::size_t>& members, const std::vector<Host>& hosts) {
  constexpr std::size_t kMost = 4;
  std::string names;
  for (std::size_t i = 0; i < std::min(members.size(), kMost); ++i)
    names += (i == 0 ? "" : ", ") + hosts[members[i]].name;
  if (members.size() > kMost) names += fmt::format(" and {} more", members.size() - kMost);
  return names;
}

std::string describe(const Difference& difference, const std::vector<Host>& hosts) {
  constexpr std::size_t kMostGroups = 6;
  if (difference.groups.size() == 1)
    return fmt::format("{} are {}", names_of(difference.groups[0].hosts, hosts),
                       difference.groups[0].value);
  std::string text = fmt::format("hosts differ in {}: ", difference.what);
  for (std::size_t i = 0; i < std::min(difference.groups.size(), kMostGroups); ++i) {
    const Group& group = difference.groups[i];
    const bool is_common = i == 0 && difference.groups.size() > 1 && group.hosts.size() > 2;
    text += fmt::format(
        "{}{} on {}", i == 0 ? "" : ", ", group.value,
        is_common ? fmt::format("{} hosts", group.hosts.size()) : names_of(group.hosts, hosts));
  }
  if (difference.groups.size() > kMostGroups)
    text += fmt::format(", and {} more values", difference.groups.size() - kMostGroups);
  return text;
}

}  // namespace ztcp::perf::probe
