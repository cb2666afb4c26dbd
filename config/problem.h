// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A fault of a config or a host: collected, so that all are reported together.
#pragma once

#include <string>
#include <vector>

namespace ztcp::config {

struct Problem {
  std::string where;  // "ztcp.conf:12:7", "nic.ztcp0.mtu", "/sys/..."
  std::string what;   // The finding and the expectation, with both values.
  std::string mend;   // The command or edit that corrects it; may be empty.
};
using Problems = std::vector<Problem>;

// "where: what; mend: ..." on one line.
std::string to_string(const Problem& problem);

}  // namespace ztcp::config
