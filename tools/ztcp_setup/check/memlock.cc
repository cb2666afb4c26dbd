// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/check/memlock.h"

#include <algorithm>
#include <charconv>
#include <sstream>
#include <vector>

#include "config/machine/machine.h"

namespace ztcp::setup {
namespace {

// A line about the user goes before one about a group, and that before "*"; among equals the last
// one holds.
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

std::optional<std::uint64_t> value_of(const std::string& text) {
  if (text == "unlimited" || text == "infinity" || text == "-1") return kUnlimitedKib;
  std::uint64_t kib = 0;
  const char* end = text.data() + text.size();
  if (std::from_chars(text.data(), end, kib).ptr != end) return std::nullopt;
  return kib;
}

void take_file(const std::string& path, const std::string& user,
               const std::set<std::string>& groups, Limit& soft, Limit& hard) {
  std::istringstream lines(config::read_text(path).value_or(""));
  for (std::string line; std::getline(lines, line);) {
    std::istringstream words(line.substr(0, line.find('#')));
    std::string domain, type, item, value;
    words >> domain >> type >> item >> value;
    const Rank rank = rank_of(domain, user, groups);
    const auto kib = value_of(value);
    if (item != "memlock" || rank == kNobody || value.empty() || !kib) continue;
    if (type != "hard" && rank >= soft.rank) soft = {*kib, rank};
    if (type != "soft" && rank >= hard.rank) hard = {*kib, rank};
  }
}

}  // namespace

std::optional<std::uint64_t> session_memlock_kib(const std::string& root, const std::string& user,
                                                 const std::set<std::string>& groups) {
  Limit soft;
  Limit hard;
  take_file(root + "/etc/security/limits.conf", user, groups, soft, hard);
  const std::string folder = root + "/etc/security/limits.d";
  for (const std::string& name : config::list_folder(folder))
    if (name.ends_with(".conf")) take_file(folder + "/" + name, user, groups, soft, hard);
  if (soft.rank == kNobody) return std::nullopt;
  return hard.rank == kNobody ? soft.kib : std::min(soft.kib, hard.kib);
}

}  // namespace ztcp::setup
