// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Whether any NIC of the config can serve. What is wrong with one RDMA device is a warning, since
// the others serve; where it is wrong with all of them, every connection of a job is refused.
#pragma once

#include <vector>

#include "config/check/check.h"
#include "config/settings.h"

namespace ztcp::setup {

// Makes faults of those warnings. The plugin goes on with them: a device may come back later.
void judge_serving(const config::Fabric& fabric, std::vector<config::Check>& checks);

}  // namespace ztcp::setup
