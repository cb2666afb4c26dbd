// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A probe's results for a terminal. Pure.
#pragma once

#include <string>
#include <vector>

#include "tools/ztcp_perf/probe/results.h"
#include "tools/ztcp_perf/probe/verdict.h"

namespace ztcp::perf::probe {

// More hosts have one character for each pair instead of numbers.
inline constexpr std::size_t kMostHostsInNumbers = 12;

// The hosts' common facts, a matrix for each rail with the sender in the row and the receiver in
// the column, all findings, and the verdict as the last line.
std::string render(const Results& results, const Limits& limits,
                   const std::vector<Finding>& findings);

}  // namespace ztcp::perf::probe
