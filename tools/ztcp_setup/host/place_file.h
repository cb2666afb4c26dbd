// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Files that are there whole or not at all, through a Host. What an interrupted attempt leaves
// behind has a name of its own (".NAME.ztcp-new"), which no program reads and the next one clears.
#pragma once

#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "config/machine/text.h"
#include "config/problem.h"
#include "tools/ztcp_setup/host/host.h"

namespace ztcp::setup {

using config::folder_of;
using Done = tl::expected<void, config::Problem>;

Done place_file(Host& host, const std::string& path, const std::string& text, Ownership ownership);
// Removes the file, if it is there, and what an interrupted place_file() left.
Done clear_file(Host& host, const std::string& path);
Done clear_temporary(Host& host, const std::string& path);  // Only the latter.

// The folders on the way to `path` that are not there, outermost first.
std::vector<std::string> missing_folders(Host& host, const std::string& path);
Done make_folders(Host& host, const std::vector<std::string>& folders);
// Those that are empty, innermost first.
Done clear_folders(Host& host, const std::vector<std::string>& folders);

}  // namespace ztcp::setup
