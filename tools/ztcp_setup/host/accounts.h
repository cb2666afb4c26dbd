// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Users, groups and who owns what. `root` is "" for this machine, where accounts come from
// wherever they are kept; in a tree they come from its /etc, and its owner stands for root.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>

namespace ztcp::setup {

bool has_user(const std::string& root, const std::string& name);
bool has_group(const std::string& root, const std::string& name);
// Every group that the user is a member of, the primary one included.
std::set<std::string> groups_of(const std::string& root, const std::string& user);

struct Standing {
  std::uint32_t mode = 0;  // Permission bits.
  std::string user;
  std::string group;
};
std::optional<Standing> standing_of(const std::string& root, const std::string& path);
// "0660 root:ztcp"
std::string to_string(const Standing& standing);

}  // namespace ztcp::setup
