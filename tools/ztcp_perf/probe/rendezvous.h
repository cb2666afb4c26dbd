// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A launcher's processes find each other: rank 0 listens, the others connect to it and prove the
// run's secret (secret.h), and rank 0 gets a connection to the agent on each host.
#pragma once

#include <string>
#include <vector>

#include "tools/ztcp_perf/probe/options.h"

namespace ztcp::perf::probe {

struct Arrival {
  int fd = -1;       // -1: the rank did not come.
  std::string host;  // Its name of itself.
};

// On rank 0: all other ranks by number; the first one is rank 0's own, without a connection. Waits
// for --host-timeout at most.
std::vector<Arrival> gather(const ProbeOptions& options);
// On the others: the connection to rank 0. Throws Failure after --host-timeout.
int join(const ProbeOptions& options);

}  // namespace ztcp::perf::probe
