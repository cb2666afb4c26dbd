// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Checks that this host's packet filter lets peers reach the ports that kernel NICs listen on, and
// those over which RDMA connections are negotiated. Reads only nft's tables, which current iptables
// uses, too; only root can read them.
#pragma once

#include <string_view>
#include <vector>

#include "config/check/check.h"
#include "config/settings.h"
#include "tools/ztcp_setup/host/host.h"

namespace ztcp::setup {

// Empty if the fabric has no such NIC.
std::vector<config::Check> check_firewall(const config::Fabric& fabric, Host& host);

// Judges the output of "nft --json list ruleset" for one NIC. Warns of a chain that drops packets
// by default, has no rule for the ports and jumps to no other chain.
config::Check judge_ruleset(std::string_view json, const config::Nic& nic);

}  // namespace ztcp::setup
