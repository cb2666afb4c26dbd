// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Files that are there whole or not at all, also after a power cut.
#pragma once

#include <string>
#include <string_view>

#include "transport/core/result.h"

namespace ztcp::tools {

// Writes a temporary file beside `path`, syncs it and renames it over `path`. On failure `path` is
// as it was and the temporary file is gone.
Status write_atomically(const std::string& path, std::string_view text);

// The same for what a tool reports to a file that the command line names, for readers who look at
// any moment, but without a sync. Its mode is the umask's. A file that is there is replaced only if
// it is empty or holds JSON (a name that was typed wrongly may be that of any file); what is no
// file (a pipe, /dev/stdout) is written to; links to files are not followed.
// Errc::kRefused: Error::where says why not.
Status write_report(const std::string& path, std::string_view json);

}  // namespace ztcp::tools
