// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Lists of CPUs as the kernel writes them: "0-3,8,10-11".
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace ztcp::config {

// The CPUs in the order of the list; stops at the first malformed entry. Leaves out CPUs that the C
// library's masks cannot hold (above 1023).
std::vector<std::uint32_t> parse_cpu_list(std::string_view text);

}  // namespace ztcp::config
