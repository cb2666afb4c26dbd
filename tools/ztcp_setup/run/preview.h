// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What a run would do, for --dry-run. The kinds of resources are asked what a run asks them, on the
// same host: what is shown here is what would be applied, and what is refused here would be refused
// there. Changes nothing.
#pragma once

#include <vector>

#include "tools/ztcp_setup/host/host.h"
#include "tools/ztcp_setup/plan/plan.h"
#include "tools/ztcp_setup/report/progress.h"
#include "tools/ztcp_setup/run/apply.h"
#include "tools/ztcp_setup/run/journal.h"

namespace ztcp::setup {

// Those of `resources` that don't hold, in order; a notice only where a run would give it.
std::vector<Preview> preview_changes(Host& host, const Journal& journal,
                                     const Resources& resources);

// The same with what would be reverted before. Adds to the plan's notes what a run would refuse,
// and what the journal tells. A journal that can't be read (only root can) is left out.
std::vector<Preview> preview_run(Host& host, Mode mode, Plan& plan);

// Adds to the notes of a plan with faults what was reverted before it was made.
void note_reverted(Plan& plan, const Outcome& reverted);

}  // namespace ztcp::setup
