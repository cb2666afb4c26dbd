// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Whether packets to peers in other networks leave through the interface with the NIC's address. A
// cloud drops those that leave through another one, and only source routing (ip rule) prevents
// that.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "config/check/check.h"
#include "config/settings.h"
#include "tools/ztcp_setup/host/host.h"

namespace ztcp::setup {

// For each NIC that stays with the kernel. Never a warning: set-up cannot know whether the job has
// hosts in other networks.
std::vector<config::Check> check_source_routes(const config::Fabric& fabric, Host& host);

// Judges the output of "ip -json route get" for an address outside the NIC's network; empty: no
// route.
config::Check judge_route(std::string_view answer, const config::Nic& nic);

}  // namespace ztcp::setup
