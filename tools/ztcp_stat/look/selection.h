// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Which statistics pages a command reads.
#pragma once

#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "core/result.h"

namespace ztcp::stat {

struct Selection {
  std::string folder;      // --folder: only this folder; empty: the usual ones.
  std::string config;      // --config: only the run_dir of this file.
  std::string crash_file;  // --after-crash: only this page.
  std::uint32_t pid = 0;   // --pid; 0: all processes.
};

// The folders with pages: of the config (ZTCP_CONFIG or the standard one, if it is there) and of
// this user's processes without a config; for root those of all users. Fails when a config named by
// --config can't be used; stderr then has its problems.
Result<std::vector<std::filesystem::path>> folders_of(const Selection& selection);

// Folders below `root` ("" on a real machine) where processes without a config publish pages, of
// all users: /run/user/UID/ztcp, /dev/shm/ztcp-UID and /tmp/ztcp-UID.
std::vector<std::filesystem::path> folders_of_all_users(const std::filesystem::path& root);

}  // namespace ztcp::stat
