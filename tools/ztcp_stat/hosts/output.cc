// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/hosts/output.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace ztcp::stat::hosts {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::size_t kWidth = 34;  // Width of the column with hosts.

// "62 hosts", "gpu07", "gpu01, gpu02, gpu03 and 7 more".
std::string names_of(const std::vector<std::size_t>& members, const Merged& merged) {
  constexpr std::size_t kMost = 3;
  if (members.size() > kMost && members.size() * 2 > merged.hosts.size())
    return fmt::format("{} hosts", members.size());
  std::string names;
  for (std::size_t i = 0; i < std::min(members.size(), kMost); ++i)
    names += (i == 0 ? "" : ", ") + merged.hosts[members[i]];
  if (members.size() > kMost) names += fmt::format(" and {} more", members.size() - kMost);
  return names;
}

std::string title_of(const std::string& name, const std::string& where) {
  return where.empty() ? name : name + " " + where;
}

Json names_json(const std::vector<std::size_t>& members, const Merged& merged) {
  Json names = Json::array();
  for (const std::size_t host : members) names.push_back(merged.hosts[host]);
  return names;
}

}  // namespace

std::string to_text(const Merged& merged) {
  if (merged.hosts.empty()) return "no report could be read\n";
  std::string text;
  for (const Difference& difference : merged.differences) {
    text += title_of(difference.name, difference.where) + "\n";
    for (const Value& value : difference.values)
      text += fmt::format("  {:<{}} {:<8} {}\n", names_of(value.hosts, merged), kWidth,
                          name_of(value.severity), value.what);
    if (difference.without == 0) continue;
    const std::string names = difference.hosts_without.empty()
                                  ? fmt::format("{} hosts", difference.without)
                                  : names_of(difference.hosts_without, merged);
    text += fmt::format("  {:<{}} {:<8} not checked there\n", names, kWidth, "-");
  }
  for (const Check& check : merged.common)
    text += fmt::format("{}\n  {:<{}} {:<8} {}\n", title_of(check.name, check.where), "all hosts",
                        kWidth, name_of(check.severity), check.what);
  const std::size_t count = merged.differences.size();
  return text + fmt::format("{} hosts, {} checks: {}\n", merged.hosts.size(), merged.checks,
                            count == 0   ? "all are equal"
                            : count == 1 ? "1 differs"
                                         : fmt::format("{} differ", count));
}

std::string to_json(const Merged& merged, int exit_code) {
  Json json = {{"tool", "ztcp_stat hosts"},    {"exit_code", exit_code},
               {"hosts", merged.hosts},        {"checks", merged.checks},
               {"differences", Json::array()}, {"common", Json::array()}};
  for (const Difference& difference : merged.differences) {
    Json one = {{"name", difference.name},
                {"where", difference.where},
                {"values", Json::array()},
                {"hosts_without", difference.without}};
    for (const Value& value : difference.values)
      one["values"].push_back({{"severity", name_of(value.severity)},
                               {"what", value.what},
                               {"hosts", names_json(value.hosts, merged)}});
    // Absent where most hosts do not have the check: those with it are in the values.
    if (!difference.hosts_without.empty())
      one["names_without"] = names_json(difference.hosts_without, merged);
    json["differences"].push_back(std::move(one));
  }
  for (const Check& check : merged.common)
    json["common"].push_back({{"name", check.name},
                              {"where", check.where},
                              {"severity", name_of(check.severity)},
                              {"what", check.what}});
  return json.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace ztcp::stat::hosts
