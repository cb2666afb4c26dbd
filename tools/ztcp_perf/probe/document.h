// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A probe's results as a JSON document. Pure.
#pragma once

#include <string>
#include <vector>

#include "tools/ztcp_perf/probe/messages.h"
#include "tools/ztcp_perf/probe/verdict.h"

namespace ztcp::perf::probe {

Json document_of(const Results& results, const std::vector<Finding>& findings, int exit_code);

}  // namespace ztcp::perf::probe
