// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What a run would meet beyond its plan: what speaks against the wishes, and what of earlier runs
// it would take back. For --dry-run, which must not promise what set-up then refuses. And what a
// run met before its plan.
#pragma once

#include "tools/ztcp_setup/host/host.h"
#include "tools/ztcp_setup/plan/plan.h"
#include "tools/ztcp_setup/report/progress.h"
#include "tools/ztcp_setup/run/apply.h"

namespace ztcp::setup {

// Adds it to the plan's notes and changes. Changes nothing on the host; a journal that can't be
// read (only root can) is left out.
void foresee(Host& host, Scope scope, Plan& plan);

// Adds to the notes of a plan with faults what was changed before it was made.
void note_taken_back(Plan& plan, const Outcome& taken_back);

}  // namespace ztcp::setup
