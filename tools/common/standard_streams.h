// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#pragma once

namespace ztcp::tools {

// If stdin, stdout or stderr is closed at start (">&-"), the first files opened would get their
// numbers, and output would be written into them. Call first in main().
void keep_standard_streams();

// False, with an error on stderr, if some output to stdout could not be written (a full disk, a
// pipe without a reader): its reader must not take it for complete. Call last in main().
bool has_kept_output(const char* program);

}  // namespace ztcp::tools
