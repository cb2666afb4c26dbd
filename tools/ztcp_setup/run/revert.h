// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Reverts applied resources, last first, by the journal. Reverts nothing while a process has one of
// the NICs open. A failed revert is a fault and its entry stays in the journal; the others go on.
#pragma once

#include <functional>

#include "tools/ztcp_setup/host/host.h"
#include "tools/ztcp_setup/report/progress.h"
#include "tools/ztcp_setup/run/journal.h"

namespace ztcp::setup {

using Chosen = std::function<bool(const Entry&)>;

Outcome revert_all(Host& host, Journal& journal, const Progress& progress);
Outcome revert_chosen(Host& host, Journal& journal, const Chosen& chosen, const Progress& progress);

// Reverts an interrupted run before another begins; keeps its pages, since the memory may not be
// available again.
Outcome revert_half_done(Host& host, Journal& journal, const Progress& progress);

// The chosen NICs that processes have open.
config::Problems held_nics(Host& host, const Journal& journal, const Chosen& chosen);

}  // namespace ztcp::setup
