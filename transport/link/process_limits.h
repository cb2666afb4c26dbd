// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Process limits that make DPDK fail without naming them.
#pragma once

#include <string>

namespace ztcp::link {

// The mending step for the limit of open files when it is reached or nearly so, and for that of
// file sizes when memif's rings exceed it: "raise ulimit -n: ...". Empty: neither applies.
std::string advice_on_files();
// The same, and for the limit of addresses where there is one: to be used after an allocation
// failed.
std::string advice_on_limits();

}  // namespace ztcp::link
