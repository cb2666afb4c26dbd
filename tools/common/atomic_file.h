// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Writes files atomically, also in case of a power failure.
#pragma once

#include <string>
#include <string_view>

#include "core/result.h"

namespace ztcp::tools {

// Writes a temporary file beside `path`, syncs it and renames it over `path`. On failure `path` is
// unchanged and the temporary file is removed.
Status write_atomically(const std::string& path, std::string_view text);

// The same, without a sync, for a report to a file named on the command line, which may be read at
// any moment. Its mode follows the umask. An existing file is replaced only if it is empty or holds
// JSON (a mistyped name may be any file's); pipes and devices (/dev/stdout) are written to; links
// to files are not followed. Errc::kRefused: Error::where has the reason.
Status write_report(const std::string& path, std::string_view json);

// An error if write_report() could not write to `path` now; changes nothing. A tool calls it before
// long work, so that its result is not lost. Devices and pipes pass.
Status can_write_report(const std::string& path);

}  // namespace ztcp::tools
