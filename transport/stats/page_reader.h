// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Reads statistics pages of this host's processes: copies a page by read(), takes the entries that
// their sequence numbers show to be whole, and checks every index and text. A page can be
// truncated, foreign or malicious; its reader then gets an error, or a Snapshot without the wrong
// entries. Reading takes milliseconds, and the owner notices nothing of it. A process must not read
// its own page: closing the file would drop its lock.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "core/result.h"
#include "transport/stats/snapshot.h"

namespace ztcp::stats {

// The folder for pages: `run_dir`/stats where that lies in memory, else $XDG_RUNTIME_DIR/ztcp, else
// /dev/shm/ztcp-UID where that is at least 1 GiB large, else /tmp/ztcp-UID.
std::filesystem::path page_folder(const std::string& run_dir);
// All folders in which this user's processes may have pages: the runtime folder of a job need not
// be the one of a login. `run_dir` empty: no config.
std::vector<std::filesystem::path> page_folders(const std::string& run_dir);

// Paths of the pages in a folder, sorted. A folder that does not exist has none.
Result<std::vector<std::filesystem::path>> find_pages(const std::filesystem::path& folder);

// The page's content now; of a process that has died, its last. Fails with the file's name and the
// reason: no page, another layout version, damaged.
Result<Snapshot> read_page(const std::filesystem::path& file);

}  // namespace ztcp::stats
