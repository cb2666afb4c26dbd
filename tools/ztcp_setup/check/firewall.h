// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Whether this host's own packet filter lets peers reach the ports that NICs of the kernel's listen
// on, and that RDMA devices are agreed upon over. Only nft's tables are looked at, in which
// iptables of today writes, too; only root may.
#pragma once

#include <string_view>
#include <vector>

#include "config/check/check.h"
#include "config/settings.h"
#include "tools/ztcp_setup/host/host.h"

namespace ztcp::setup {

// Nothing where the fabric has no such NIC.
std::vector<config::Check> check_firewall(const config::Fabric& fabric, Host& host);

// What "nft --json list ruleset" says of one NIC. A chain that refuses what no rule of its own lets
// in, and has none for the ports and leads to no other chain, is a warning.
config::Check judge_ruleset(std::string_view json, const config::Nic& nic);

}  // namespace ztcp::setup
