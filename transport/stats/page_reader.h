// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Reads statistics pages of this host's processes: maps a page read-only, copies each entry under
// its sequence counter, and checks every index and string. A page can be truncated, foreign or
// malicious; its reader then gets an error. Reading never blocks, and never blocks the owner.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "transport/core/result.h"
#include "transport/stats/snapshot.h"

namespace ztcp::stats {

// The folder for pages: `run_dir`/stats with a config, else $XDG_RUNTIME_DIR/ztcp, else
// /tmp/ztcp-UID.
std::filesystem::path page_folder(const std::string& run_dir);

// Paths of the pages in a folder, sorted. A folder that does not exist has none.
Result<std::vector<std::filesystem::path>> find_pages(const std::filesystem::path& folder);

// The page's content now; of a process that has died, its last. Fails with the file's name and the
// reason: no page, another layout version, damaged.
Result<Snapshot> read_page(const std::filesystem::path& file);

}  // namespace ztcp::stats
