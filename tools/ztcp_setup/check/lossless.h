// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Whether the network below RoCE is kept from losing packets: priority flow control (PFC, IEEE
// 802.1Qbb) and congestion notification (ECN, from which RoCE's NICs take their pace), as far as
// the host's end of a cable tells without a vendor's tools. What the switches do no host can know.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "config/check/check.h"
#include "config/settings.h"
#include "tools/ztcp_setup/host/host.h"

namespace ztcp::setup {

// Of each RoCE device of the fabric that is a NIC; software's recovers by itself.
std::vector<config::Check> check_lossless(const config::Fabric& fabric, Host& host);

// Priorities that "dcb pfc show" says PFC is on for; absent: it says nothing.
std::optional<std::vector<int>> lossless_priorities(std::string_view answer);

}  // namespace ztcp::setup
