// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Applies resources. Checks all before changing any; records each state in the journal before
// changing it; skips resources that hold already.
#pragma once

#include "tools/ztcp_setup/host/host.h"
#include "tools/ztcp_setup/report/progress.h"
#include "tools/ztcp_setup/resources/resource.h"
#include "tools/ztcp_setup/run/journal.h"

namespace ztcp::setup {

enum class Scope : std::uint8_t {
  kWhole,  // All wanted resources: others that an earlier run applied are reverted.
  kMore,   // In addition to those applied before (--add).
};

// All faults that prevent a run, found before anything is changed.
config::Problems faults_before(Host& host, const Journal& journal, const Resources& resources,
                               Scope scope);
// Whether a journal entry is reverted before `resources` are applied.
bool is_stale(const Entry& entry, const Resources& resources, Scope scope);

Outcome apply_all(Host& host, Journal& journal, const Resources& resources, Scope scope,
                  const Progress& progress);

// Applies again the settings that a reboot loses, from the journal. A fault does not stop the rest:
// jobs can run on the other NICs.
Outcome apply_after_boot(Host& host, Journal& journal, const Progress& progress);

}  // namespace ztcp::setup
