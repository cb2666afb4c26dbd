// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Whether any NIC of the config can work. A problem of one RDMA device is a warning, since the
// others still work; with problems on all of them every connection of a job is refused.
#pragma once

#include <vector>

#include "config/check/check.h"
#include "config/settings.h"

namespace ztcp::setup {

// Turns those warnings into faults. The plugin starts in spite of them: a device may come back.
void judge_serving(const config::Fabric& fabric, std::vector<config::Check>& checks);

}  // namespace ztcp::setup
