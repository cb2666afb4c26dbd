// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#pragma once

namespace ztcp::tools {

// Who starts a program with stdin, stdout or stderr closed (">&-") gives their numbers to the first
// files that it opens, and what it prints would be written into these. First thing in main().
void keep_standard_streams();

// False where not all that was printed to stdout has found room (a full disk), and says so: who
// reads it must not take what is there for all. Last thing in main().
bool has_kept_output(const char* program);

}  // namespace ztcp::tools
