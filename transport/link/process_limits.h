// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Limits of this process that DPDK runs into without a word of them.
#pragma once

#include <string>

namespace ztcp::link {

// What to do about the limit of open files when it is reached or nearly so, and about that of their
// sizes when memif's rings can't be had with it: "raise ulimit -n: ...". Empty: neither is.
std::string advice_on_files();
// The same, and about the limit of addresses where there is one: for when memory was not to be had.
std::string advice_on_limits();

}  // namespace ztcp::link
