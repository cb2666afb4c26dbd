// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Ctrl-C and SIGTERM: noted by the handler, thrown at the next safe place.
#pragma once

namespace ztcp::perf {

// Notes SIGTERM, and SIGINT unless `ignore_sigint` (our launcher's children hear of it from the
// launcher).
void note_interrupts(bool ignore_sigint);
// Throws Stopped once a signal was noted.
void throw_if_interrupted();
// The process ends with `exit_code` after `seconds` at the latest, even if the plugin hangs in a
// call.
void end_within(unsigned seconds, int exit_code);

}  // namespace ztcp::perf
