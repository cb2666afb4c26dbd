// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Which files root may trust: those that only root can have created or changed.
#pragma once

#include <optional>
#include <string>

#include "config/problem.h"
#include "tools/ztcp_setup/host/host.h"

namespace ztcp::setup {

// Why the file at `path`, or a folder on the way to it, cannot be trusted; absent: it can, or does
// not exist. A file must belong to root, not be writable by others, and not be a link; so must a
// folder, but a link that only root can change is accepted.
std::optional<config::Problem> why_not_trusted(Host& host, const std::string& path);

// The failure as a sentence: "mkdir: Permission denied", or the reason not to trust.
config::Problem problem_of(Host& host, const std::string& path, const Error& error,
                           std::string mend);
// For a file or folder, where the remedy depends on the error only.
config::Problem problem_of(Host& host, const std::string& path, const Error& error);

}  // namespace ztcp::setup
