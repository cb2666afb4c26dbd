// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Users and groups of a LiveHost: from wherever this machine keeps them; in a tree from its /etc.
#include <array>
#include <grp.h>
#include <pwd.h>

#include "config/machine/readings.h"
#include "config/machine/text.h"
#include "tools/ztcp_setup/live/live_host.h"

namespace ztcp::setup {
namespace {

constexpr const char* kUsers = "/etc/passwd";
constexpr const char* kGroups = "/etc/group";

// A line of one of them: "name:password:number:...".
struct Entry {
  std::string name;
  std::uint32_t id = 0;
  std::string rest;  // Of a user: the number of the primary group; of a group: its members.
};

std::vector<Entry> entries_of(config::Machine& machine, const char* path) {
  const std::string text = config::text_of(machine, path);
  std::vector<Entry> entries;
  for (std::string_view line : config::lines_of(text)) {
    std::array<std::string_view, 4> fields;
    for (std::string_view& field : fields) {
      const auto end = std::min(line.find(':'), line.size());
      field = line.substr(0, end);
      line.remove_prefix(std::min(end + 1, line.size()));
    }
    const auto id = static_cast<std::uint32_t>(config::leading_number(fields[2]));
    if (!fields[0].empty()) entries.push_back({std::string(fields[0]), id, std::string(fields[3])});
  }
  return entries;
}

std::optional<Entry> entry_of(config::Machine& machine, const char* path, const std::string& name) {
  for (Entry& entry : entries_of(machine, path))
    if (entry.name == name) return std::move(entry);
  return std::nullopt;
}

// Root's is needed in no file.
std::string name_in(config::Machine& machine, const char* path, std::uint32_t id) {
  if (id == 0) return "root";
  for (const Entry& entry : entries_of(machine, path))
    if (entry.id == id) return entry.name;
  return std::to_string(id);
}

}  // namespace

std::optional<std::uint32_t> LiveHost::user_id(const std::string& name) {
  if (!base_.empty()) {
    const auto entry = entry_of(machine_, kUsers, name);
    return entry ? std::optional(entry->id) : std::nullopt;
  }
  const passwd* entry = ::getpwnam(name.c_str());
  if (entry == nullptr) return std::nullopt;
  return entry->pw_uid;
}

std::optional<std::uint32_t> LiveHost::group_id(const std::string& name) {
  if (!base_.empty()) {
    const auto entry = entry_of(machine_, kGroups, name);
    return entry ? std::optional(entry->id) : std::nullopt;
  }
  const struct group* entry = ::getgrnam(name.c_str());
  if (entry == nullptr) return std::nullopt;
  return entry->gr_gid;
}

std::string LiveHost::user_name(std::uint32_t id) {
  if (!base_.empty()) return name_in(machine_, kUsers, id);
  const passwd* entry = ::getpwuid(id);
  return entry == nullptr ? std::to_string(id) : entry->pw_name;
}

std::string LiveHost::group_name(std::uint32_t id) {
  if (!base_.empty()) return name_in(machine_, kGroups, id);
  const struct group* entry = ::getgrgid(id);
  return entry == nullptr ? std::to_string(id) : entry->gr_name;
}

std::set<std::string> LiveHost::groups_of(const std::string& user) {
  std::set<std::string> groups;
  if (!base_.empty()) {
    const auto account = entry_of(machine_, kUsers, user);
    for (const Entry& group : entries_of(machine_, kGroups))
      if ((account && account->rest == std::to_string(group.id)) ||
          config::lists_word(group.rest, user))
        groups.insert(group.name);
    return groups;
  }
  const passwd* entry = ::getpwnam(user.c_str());
  if (entry == nullptr) return groups;
  std::array<gid_t, 1024> ids{};
  int count = ids.size();
  ::getgrouplist(user.c_str(), entry->pw_gid, ids.data(), &count);
  for (int i = 0; i < count && i < static_cast<int>(ids.size()); ++i)
    groups.insert(group_name(ids[static_cast<std::size_t>(i)]));
  return groups;
}

}  // namespace ztcp::setup
