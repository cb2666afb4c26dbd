// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Takes back what was granted, last first, by the journal. Nothing is taken back while a process
// holds one of the NICs. What can't be restored is a fault and stays in the journal; the rest goes
// on.
#pragma once

#include <functional>

#include "tools/ztcp_setup/host/host.h"
#include "tools/ztcp_setup/report/conduct.h"
#include "tools/ztcp_setup/resources/hands.h"
#include "tools/ztcp_setup/run/journal.h"

namespace ztcp::setup {

using Chosen = std::function<bool(const Entry&)>;

Outcome take_back(Host& host, Journal& journal, const Conduct& conduct);
// Only what is `chosen`.
Outcome take_back(Host& host, Journal& journal, const Chosen& chosen, const Conduct& conduct);

// What a run that was cut off did, before another begins; its pages stay, for memory in use since
// may not give them again.
Outcome take_back_half_done(Host& host, Journal& journal, const Conduct& conduct);

// The NICs among the chosen that processes hold.
config::Problems held_nics(Host& host, const Journal& journal, const Chosen& chosen);

// One entry's state as it was before.
Restored restore_entry(Host& host, const Entry& entry);

}  // namespace ztcp::setup
