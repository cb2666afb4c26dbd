// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Whether the network below RoCE avoids packet loss: priority flow control (PFC, IEEE 802.1Qbb) and
// congestion notification (ECN, by which RoCE NICs adapt their rate), as far as the host's end of
// the cable shows it without a vendor's tools. No host can see the switches' settings.
#pragma once

#include <optional>
#include <string_view>
#include <vector>

#include "config/check/check.h"
#include "config/settings.h"
#include "tools/ztcp_setup/host/host.h"

namespace ztcp::setup {

// Checks each hardware RoCE device of the fabric; software RoCE recovers by itself.
std::vector<config::Check> check_lossless(const config::Fabric& fabric, Host& host);

// Priorities with PFC on in the output of "dcb pfc show"; absent: malformed.
std::optional<std::vector<int>> lossless_priorities(std::string_view answer);

}  // namespace ztcp::setup
