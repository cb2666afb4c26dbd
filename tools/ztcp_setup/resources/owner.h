// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Users and groups of files, folders and devices, by name. An empty name is root.
#pragma once

#include <optional>
#include <string>

#include "config/problem.h"
#include "tools/ztcp_setup/host/host.h"
#include "tools/ztcp_setup/resources/kind.h"

namespace ztcp::setup {

// The numbers of a user and a group when a resource was applied, kept in the journal: accounts of a
// directory service are unknown at boot, before the network.
struct Ids {
  std::optional<std::uint32_t> user;
  std::optional<std::uint32_t> group;

  void note(Host& host, const std::string& user_name, const std::string& group_name);
  void fields(Fields& fields);
};

// Absent: a name is unknown, now and in the journal.
std::optional<Ownership> ownership_of(Host& host, std::uint32_t mode, const std::string& user,
                                      const std::string& group, const Ids& ids);
void check_names(Host& host, const std::string& where, const std::string& user,
                 const std::string& group, config::Problems& problems);
tl::unexpected<config::Problem> unknown_owner(const std::string& where, const std::string& user,
                                              const std::string& group);

std::string or_root(const std::string& name);
// "0660 root:ztcp"
std::string ownership_text(std::uint32_t mode, const std::string& user, const std::string& group);
// The present ownership; empty: it does not exist.
std::string ownership_text(Host& host, const std::string& path);

}  // namespace ztcp::setup
