// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The file of --hosts: a host a line, comments after '#'. Pure.
#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace ztcp::perf::probe {

// The hosts in the order of the file. Throws Failure, naming the line, for a host that is listed
// twice or that ssh would take for an option, and for fewer than two hosts.
std::vector<std::string> parse_host_list(std::string_view text, const std::string& path);

}  // namespace ztcp::perf::probe
