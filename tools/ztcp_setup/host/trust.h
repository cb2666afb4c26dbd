// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Which files root may believe: those that nobody but root could have put there or changed.
#pragma once

#include <optional>
#include <string>

#include "config/problem.h"
#include "tools/ztcp_setup/host/host.h"

namespace ztcp::setup {

// Why the file at `path`, or a folder on the way to it, can't be believed; absent: it can, or is
// not there. A file must be root's, not writable by others, and no link; a folder likewise, but a
// link that only root can change is as good as a folder.
std::optional<config::Problem> why_not_trusted(Host& host, const std::string& path);

// What failed in words: "mkdir: Permission denied", or the reason not to trust.
config::Problem problem_of(Host& host, const std::string& path, const Error& error,
                           std::string mend);
// Of a file or folder, where what mends it depends on the error alone.
config::Problem problem_of(Host& host, const std::string& path, const Error& error);

}  // namespace ztcp::setup
