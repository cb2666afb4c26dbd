// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Lists of CPUs as the kernel writes them: "0-3,8,10-11".
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace ztcp::config {

// In their order there; up to what is no list. No CPU beyond those that a mask of the C library
// can name (1023).
std::vector<std::uint32_t> parse_cpu_list(std::string_view text);

}  // namespace ztcp::config
