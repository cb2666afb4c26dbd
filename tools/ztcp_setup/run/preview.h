// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The changes that a run or --undo would make, for --dry-run. Calls the same functions of resources
// as a run, on the same host, so both show the same changes and refuse the same things. Changes
// nothing.
#pragma once

#include <vector>

#include "tools/ztcp_setup/host/host.h"
#include "tools/ztcp_setup/plan/plan.h"
#include "tools/ztcp_setup/report/outcome.h"
#include "tools/ztcp_setup/report/progress.h"
#include "tools/ztcp_setup/run/apply.h"
#include "tools/ztcp_setup/run/journal.h"

namespace ztcp::setup {

// Those of `resources` that do not hold, in order; a notice only where a run would run it.
std::vector<Preview> preview_changes(Host& host, const Journal& journal,
                                     const Resources& resources);

// The same with the reverts before them. Adds the faults of a run and the journal's findings to the
// plan's notes. Skips a journal that only root can read.
std::vector<Preview> preview_run(Host& host, Mode mode, Plan& plan);

// Adds the reverts that preceded the plan to the notes of a plan with faults.
void note_reverted(Plan& plan, const Outcome& reverted);

// The changes that --undo would make. Uses only the journal, as undo does.
UndoPreview preview_undo(Host& host, const Journal& journal);

}  // namespace ztcp::setup
