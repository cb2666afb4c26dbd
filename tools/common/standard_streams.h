// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#pragma once

namespace ztcp::tools {

// Who starts a program with stdin, stdout or stderr closed (">&-") gives their numbers to the first
// files that it opens, and what it prints would be written into these. First thing in main().
void keep_standard_streams();

}  // namespace ztcp::tools
