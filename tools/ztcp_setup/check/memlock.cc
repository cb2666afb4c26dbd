// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The memory that a user's sessions may lock, as PAM will set it: /etc/security/limits.conf and
// limits.d. Read from the files, so that root can check it for others.
#include <algorithm>
#include <string_view>

#include "config/machine/readings.h"
#include "config/machine/text.h"
#include "tools/ztcp_setup/check/checks.h"

namespace ztcp::setup {
namespace {

// A line for the user overrides one for a group, which overrides "*"; among equals the last one
// counts.
enum Rank { kNobody, kEverybody, kGroup, kUser };

struct Limit {
  std::uint64_t kib = 0;
  Rank rank = kNobody;
};

Rank rank_of(const std::string& domain, const std::string& user,
             const std::set<std::string>& groups) {
  if (domain == "*") return kEverybody;
  if (!user.empty() && domain == user) return kUser;
  if (domain.starts_with('@') && groups.contains(domain.substr(1))) return kGroup;
  return kNobody;
}

std::optional<std::uint64_t> value_of(std::string_view text) {
  if (text == "unlimited" || text == "infinity" || text == "-1") return kUnlimitedKib;
  return config::parse_number(text);
}

void take_file(config::Machine& machine, const std::string& path, const std::string& user,
               const std::set<std::string>& groups, Limit& soft, Limit& hard) {
  const std::string text = config::text_of(machine, path);
  for (const std::string_view line : config::lines_of(text)) {
    const auto words = config::words_of(line.substr(0, line.find('#')));
    if (words.size() < 4) continue;
    const std::string domain(words[0]);
    const std::string_view type = words[1];
    const std::string_view item = words[2];
    const Rank rank = rank_of(domain, user, groups);
    const auto kib = value_of(words[3]);
    if (item != "memlock" || rank == kNobody || !kib) continue;
    if (type != "hard" && rank >= soft.rank) soft = {*kib, rank};
    if (type != "soft" && rank >= hard.rank) hard = {*kib, rank};
  }
}

}  // namespace

std::optional<std::uint64_t> session_memlock_kib(config::Machine& machine, const std::string& user,
                                                 const std::set<std::string>& groups) {
  Limit soft;
  Limit hard;
  take_file(machine, "/etc/security/limits.conf", user, groups, soft, hard);
  const std::string folder = "/etc/security/limits.d";
  for (const std::string& name : machine.list(folder))
    if (name.ends_with(".conf")) take_file(machine, folder + "/" + name, user, groups, soft, hard);
  if (soft.rank == kNobody) return std::nullopt;
  return hard.rank == kNobody ? soft.kib : std::min(soft.kib, hard.kib);
}

}  // namespace ztcp::setup
