// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Applies resources. Everything is checked before anything is changed; each state that will be
// changed is in the journal before it is; whatever holds already is left alone.
#pragma once

#include "tools/ztcp_setup/host/host.h"
#include "tools/ztcp_setup/report/progress.h"
#include "tools/ztcp_setup/resources/resource.h"
#include "tools/ztcp_setup/run/journal.h"

namespace ztcp::setup {

enum class Scope : std::uint8_t {
  kWhole,  // All that is wanted: what an earlier run applied beside it is reverted.
  kMore,   // Beside what was applied before (--add).
};

// What speaks against a run: all of it, before anything is changed.
config::Problems faults_before(Host& host, const Journal& journal, const Resources& resources,
                               Scope scope);
// Whether an entry of the journal is reverted before `resources` are applied.
bool is_stale(const Entry& entry, const Resources& resources, Scope scope);

Outcome apply_all(Host& host, Journal& journal, const Resources& resources, Scope scope,
                  const Progress& progress);

// Applies again what a boot undoes, as the journal has it. A fault does not stop the rest, for jobs
// can run on the other NICs.
Outcome apply_after_boot(Host& host, Journal& journal, const Progress& progress);

}  // namespace ztcp::setup
