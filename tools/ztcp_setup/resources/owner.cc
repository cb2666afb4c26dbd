// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/resources/owner.h"

#include <fmt/format.h>

namespace ztcp::setup {

void Ids::note(Host& host, const std::string& user_name, const std::string& group_name) {
  if (!user_name.empty())
    if (const auto id = host.user_id(user_name)) user = id;
  if (!group_name.empty())
    if (const auto id = host.group_id(group_name)) group = id;
}

void Ids::fields(Fields& fields) {
  fields.optional_number("user_id", user);
  fields.optional_number("group_id", group);
}

std::optional<Ownership> ownership_of(Host& host, std::uint32_t mode, const std::string& user,
                                      const std::string& group, const Ids& ids) {
  auto user_id = user.empty() ? std::optional<std::uint32_t>(0) : host.user_id(user);
  auto group_id = group.empty() ? std::optional<std::uint32_t>(0) : host.group_id(group);
  if (!user_id) user_id = ids.user;
  if (!group_id) group_id = ids.group;
  if (!user_id || !group_id) return std::nullopt;
  return Ownership{mode, *user_id, *group_id};
}

void check_names(Host& host, const std::string& where, const std::string& user,
                 const std::string& group, config::Problems& problems) {
  if (!user.empty() && !host.user_id(user))
    problems.push_back({where, fmt::format("there is no user {} for it", user),
                        fmt::format("sudo useradd {}", user)});
  if (!group.empty() && !host.group_id(group))
    problems.push_back({where, fmt::format("there is no group {} for it", group),
                        fmt::format("sudo groupadd {}", group)});
}

// Accounts of a directory service are unknown at boot, before the network.
tl::unexpected<config::Problem> unknown_owner(const std::string& where, const std::string& user,
                                              const std::string& group) {
  return tl::unexpected(config::Problem{
      where,
      fmt::format("the {} {} is unknown now", group.empty() ? "user" : "group",
                  group.empty() ? user : group),
      fmt::format("when getent {} {} finds it: sudo ztcp_setup --boot",
                  group.empty() ? "passwd" : "group", group.empty() ? user : group)});
}

std::string or_root(const std::string& name) { return name.empty() ? "root" : name; }

std::string ownership_text(std::uint32_t mode, const std::string& user, const std::string& group) {
  return fmt::format("{:04o} {}:{}", mode, or_root(user), or_root(group));
}

std::string ownership_text(Host& host, const std::string& path) {
  const FileFacts facts = host.facts(path);
  if (facts.kind == FileKind::kAbsent) return {};
  const Ownership& who = facts.ownership;
  return ownership_text(who.mode, host.user_name(who.user), host.group_name(who.group));
}

}  // namespace ztcp::setup
