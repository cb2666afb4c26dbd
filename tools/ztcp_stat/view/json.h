// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Looks as JSON. Names are those of transport/stats/, units stand in the names; rates are bytes per
// second. Pure.
#pragma once

#include <nlohmann/json.hpp>

#include "tools/ztcp_stat/look/look.h"
#include "tools/ztcp_stat/why/finding.h"

namespace ztcp::stat {

// All processes with devices, lanes, connections, flows and latencies. `before` null: rates since
// the start of each process.
nlohmann::json json_of(const Look* before, const Look& after);
// {"healthy": ..., "findings": [...]}
nlohmann::json json_of(const Findings& findings);

}  // namespace ztcp::stat
