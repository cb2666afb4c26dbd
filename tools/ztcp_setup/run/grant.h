// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Carries wishes out. Everything is checked before anything is changed; each state that will be
// changed is in the journal before it is; whatever holds already is left alone.
#pragma once

#include "tools/ztcp_setup/host/host.h"
#include "tools/ztcp_setup/report/conduct.h"
#include "tools/ztcp_setup/resources/wish.h"
#include "tools/ztcp_setup/run/journal.h"

namespace ztcp::setup {

enum class Scope : std::uint8_t {
  kWhole,  // All that is wished: what an earlier run was granted beside it is taken back.
  kMore,   // Beside what was granted before (--add).
};

// What speaks against wishes: all of it, before anything is changed.
config::Problems faults_before(Host& host, const Wishes& wishes);
// Whether an entry of the journal is taken back before `wishes` are granted.
bool is_stale(const Entry& entry, const Wishes& wishes, Scope scope);

Outcome grant(Host& host, Journal& journal, const Wishes& wishes, Scope scope,
              const Conduct& conduct);

// After a boot: grants again what a boot undoes, as the journal has it. A fault does not stop the
// rest, for jobs can run on the other NICs.
Outcome grant_again(Host& host, Journal& journal, const Conduct& conduct);

}  // namespace ztcp::setup
