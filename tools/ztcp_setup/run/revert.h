// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Reverts what was applied, last first, by the journal. Nothing is reverted while a process holds
// one of the NICs. What can't be put back is a fault and stays in the journal; the rest goes on.
#pragma once

#include <functional>

#include "tools/ztcp_setup/host/host.h"
#include "tools/ztcp_setup/report/progress.h"
#include "tools/ztcp_setup/run/journal.h"

namespace ztcp::setup {

using Chosen = std::function<bool(const Entry&)>;

Outcome revert_all(Host& host, Journal& journal, const Progress& progress);
Outcome revert_chosen(Host& host, Journal& journal, const Chosen& chosen, const Progress& progress);

// What a run that was cut off did, before another begins; its pages stay, for memory in use since
// may not give them again.
Outcome revert_half_done(Host& host, Journal& journal, const Progress& progress);

// The NICs among the chosen that processes hold.
config::Problems held_nics(Host& host, const Journal& journal, const Chosen& chosen);

}  // namespace ztcp::setup
