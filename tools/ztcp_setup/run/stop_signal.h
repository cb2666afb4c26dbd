// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Ctrl-C, SIGTERM and a lost terminal make set-up stop between two steps instead of within one.
// Applies to the whole process, from the first call on.
#pragma once

namespace ztcp::setup {

void stop_on_signals();
bool stop_requested();

}  // namespace ztcp::setup
