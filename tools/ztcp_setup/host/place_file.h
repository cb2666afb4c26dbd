// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Writes files atomically through a Host. An interrupted attempt leaves a file named
// ".NAME.ztcp-new", which no program reads and the next attempt removes.
#pragma once

#include <string>
#include <vector>

#include "config/machine/text.h"
#include "config/problem.h"
#include "core/result.h"
#include "tools/ztcp_setup/host/host.h"

namespace ztcp::setup {

using config::folder_of;
using Done = Result<void, config::Problem>;

Done place_file(Host& host, const std::string& path, const std::string& text, Ownership ownership);
// Removes the file, if it exists, and the rest of an interrupted place_file().
Done clear_file(Host& host, const std::string& path);
Done clear_temporary(Host& host, const std::string& path);  // Only the latter.

// The missing folders on the way to `path`, outermost first.
std::vector<std::string> missing_folders(Host& host, const std::string& path);
Done make_folders(Host& host, const std::vector<std::string>& folders);
// Removes the empty ones, innermost first.
Done clear_folders(Host& host, const std::vector<std::string>& folders);

}  // namespace ztcp::setup
