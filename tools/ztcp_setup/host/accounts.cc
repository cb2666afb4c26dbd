// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/host/accounts.h"

#include <array>
#include <grp.h>
#include <pwd.h>
#include <sstream>
#include <string_view>
#include <sys/stat.h>
#include <vector>

#include <fmt/format.h>

#include "config/machine/machine.h"

namespace ztcp::setup {
namespace {

// The fields of a line of /etc/passwd or /etc/group.
std::vector<std::string> fields_of(const std::string& line) {
  std::vector<std::string> fields;
  std::istringstream in(line);
  for (std::string field; std::getline(in, field, ':');) fields.push_back(field);
  return fields;
}

std::vector<std::vector<std::string>> lines_of(const std::string& path) {
  std::vector<std::vector<std::string>> lines;
  std::istringstream in(config::read_text(path).value_or(""));
  for (std::string line; std::getline(in, line);) lines.push_back(fields_of(line));
  return lines;
}

std::optional<std::vector<std::string>> entry_of(const std::string& path, const std::string& name) {
  for (const auto& fields : lines_of(path))
    if (!fields.empty() && fields.front() == name) return fields;
  return std::nullopt;
}

bool lists(const std::string& members, const std::string& name) {
  return ("," + members + ",").find("," + name + ",") != std::string::npos;
}

std::string name_of_user(uid_t id) {
  const passwd* entry = ::getpwuid(id);
  return entry == nullptr ? std::to_string(id) : entry->pw_name;
}
std::string name_of_group(gid_t id) {
  const group* entry = ::getgrgid(id);
  return entry == nullptr ? std::to_string(id) : entry->gr_name;
}

}  // namespace

bool has_user(const std::string& root, const std::string& name) {
  return root.empty() ? ::getpwnam(name.c_str()) != nullptr
                      : entry_of(root + "/etc/passwd", name).has_value();
}

bool has_group(const std::string& root, const std::string& name) {
  return root.empty() ? ::getgrnam(name.c_str()) != nullptr
                      : entry_of(root + "/etc/group", name).has_value();
}

std::set<std::string> groups_of(const std::string& root, const std::string& user) {
  std::set<std::string> groups;
  if (root.empty()) {
    const passwd* entry = ::getpwnam(user.c_str());
    if (entry == nullptr) return groups;
    std::array<gid_t, 1024> ids{};
    int count = ids.size();
    ::getgrouplist(user.c_str(), entry->pw_gid, ids.data(), &count);
    for (int i = 0; i < count && i < static_cast<int>(ids.size()); ++i)
      groups.insert(name_of_group(ids[static_cast<std::size_t>(i)]));
    return groups;
  }
  const auto account = entry_of(root + "/etc/passwd", user);
  for (const auto& group : lines_of(root + "/etc/group")) {
    const bool primary =
        account && account->size() > 3 && group.size() > 2 && group[2] == (*account)[3];
    if (primary || (group.size() > 3 && lists(group[3], user))) groups.insert(group.front());
  }
  return groups;
}

std::optional<Standing> standing_of(const std::string& root, const std::string& path) {
  struct stat info {};
  struct stat top {};
  if (::stat((root + path).c_str(), &info) != 0) return std::nullopt;
  if (!root.empty() && ::stat(root.c_str(), &top) != 0) return std::nullopt;
  return Standing{info.st_mode & 07777U,
                  info.st_uid == top.st_uid ? "root" : name_of_user(info.st_uid),
                  info.st_gid == top.st_gid ? "root" : name_of_group(info.st_gid)};
}

std::string to_string(const Standing& standing) {
  return fmt::format("{:04o} {}:{}", standing.mode, standing.user, standing.group);
}

}  // namespace ztcp::setup
