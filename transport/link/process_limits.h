// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Limits of this process that DPDK runs into without a word of them.
#pragma once

#include <string>

namespace ztcp::link {

// What to do about those that are reached or nearly so: "raise ulimit -n: ...". Empty: none is.
std::string advice_on_limits();

}  // namespace ztcp::link
