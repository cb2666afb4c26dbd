// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Checks of --check beside those that the plugin's init makes, too (config/check/check.h).
// The source of each function describes it.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "config/check/check.h"
#include "config/machine/machine.h"
#include "config/settings.h"
#include "tools/ztcp_setup/host/host.h"

namespace ztcp::setup {

// --- firewall.cc ---------------------------------------------------------------------------------
// Empty if the fabric has no NIC of the kernel's or for RDMA.
std::vector<config::Check> check_firewall(const config::Fabric& fabric, Host& host);

// Judges the output of "nft --json list ruleset" for one NIC. Warns of a chain that drops packets
// by default, has no rule for the ports and jumps to no other chain.
config::Check judge_ruleset(std::string_view json, const config::Nic& nic);

// --- lossless.cc ---------------------------------------------------------------------------------
// Checks each hardware RoCE device of the fabric; software RoCE recovers by itself.
std::vector<config::Check> check_lossless(const config::Fabric& fabric, Host& host);

// Priorities with PFC on in the output of "dcb pfc show"; absent: malformed.
std::optional<std::vector<int>> lossless_priorities(std::string_view answer);

// --- rights.cc -----------------------------------------------------------------------------------
std::vector<config::Check> check_rights(const config::Fabric& fabric, Host& host);

// --- memlock.cc ----------------------------------------------------------------------------------
inline constexpr std::uint64_t kUnlimitedKib = UINT64_MAX;

// The soft limit in KiB; absent: not set in the files, so sessions keep the system's default.
// `user` may be empty: then the limit of a member of `groups` without lines of its own.
std::optional<std::uint64_t> session_memlock_kib(config::Machine& machine, const std::string& user,
                                                 const std::set<std::string>& groups);

// --- serving.cc ----------------------------------------------------------------------------------
// Turns warnings into faults where no NIC of the config can work. The plugin starts in spite of
// them: a device may come back.
void judge_serving(const config::Fabric& fabric, std::vector<config::Check>& checks);

// --- source_routes.cc ----------------------------------------------------------------------------
// For each NIC that stays with the kernel. Never a warning: set-up cannot know whether the job has
// hosts in other networks.
std::vector<config::Check> check_source_routes(const config::Fabric& fabric, Host& host);

// Judges the output of "ip -json route get" for an address outside the NIC's network; empty: no
// route.
config::Check judge_route(std::string_view answer, const config::Nic& nic);

}  // namespace ztcp::setup
