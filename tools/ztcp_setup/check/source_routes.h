// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Whether peers in other networks are reached through the interface that has a NIC's address. A
// cloud drops what leaves through another one, and only routes by source (ip rule) prevent that.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "config/check/check.h"
#include "config/settings.h"
#include "tools/ztcp_setup/host/host.h"

namespace ztcp::setup {

// Of each NIC that stays with the kernel. Whether the job's hosts are in its network, which needs
// no route, set-up can't know: what is found is told, and is no warning.
std::vector<config::Check> check_source_routes(const config::Fabric& fabric, Host& host);

// What "ip -json route get" has said of a way out of the NIC's network; empty: that there is none.
config::Check judge_route(std::string_view answer, const config::Nic& nic);

}  // namespace ztcp::setup
