// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Users and groups of a LiveHost, from all of the machine's sources.
#include <array>
#include <grp.h>
#include <pwd.h>

#include "tools/ztcp_setup/live/live_host.h"

namespace ztcp::setup {

std::optional<std::uint32_t> LiveHost::user_id(const std::string& name) {
  const passwd* entry = ::getpwnam(name.c_str());
  if (entry == nullptr) return std::nullopt;
  return entry->pw_uid;
}

std::optional<std::uint32_t> LiveHost::group_id(const std::string& name) {
  const struct group* entry = ::getgrnam(name.c_str());
  if (entry == nullptr) return std::nullopt;
  return entry->gr_gid;
}

std::string LiveHost::user_name(std::uint32_t id) {
  const passwd* entry = ::getpwuid(id);
  return entry == nullptr ? std::to_string(id) : entry->pw_name;
}

std::string LiveHost::group_name(std::uint32_t id) {
  const struct group* entry = ::getgrgid(id);
  return entry == nullptr ? std::to_string(id) : entry->gr_name;
}

std::set<std::string> LiveHost::groups_of(const std::string& user) {
  std::set<std::string> groups;
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
