// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Ctrl-C and SIGTERM: recorded by the handler, thrown at the next safe place.
#pragma once

namespace ztcp::perf {

// Records SIGTERM, and SIGINT unless `ignore_sigint` (the launcher forwards it to its children).
void note_interrupts(bool ignore_sigint);
// Throws Stopped after a recorded signal.
void throw_if_interrupted();
// Ends the process with `exit_code` after at most `seconds`, even if a plugin call hangs.
void end_within(unsigned seconds, int exit_code);

}  // namespace ztcp::perf
