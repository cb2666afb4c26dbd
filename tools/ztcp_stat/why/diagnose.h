// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// All rules over two looks. Pure.
#pragma once

#include "tools/ztcp_stat/look/look.h"
#include "tools/ztcp_stat/why/finding.h"

namespace ztcp::stat {

// The worst finding first: by severity, then by rule (causes before symptoms), then by weight.
// `before` null: judges everything since the start of each process, as after a crash.
Findings diagnose(const Look* before, const Look& after);

// True if a finding is a warning or worse.
bool names_a_fault(const Findings& findings);

}  // namespace ztcp::stat
