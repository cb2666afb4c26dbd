// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// "ztcp_perf probe": the coordinator, or one of its agents.
#pragma once

namespace ztcp::perf::probe {

// `argv[0]` is "probe". Returns the exit code; reports failures itself.
int run_probe(int argc, char** argv);

}  // namespace ztcp::perf::probe
