// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The changes that --undo would make, for --undo --dry-run. Uses only the journal, as undo does,
// and changes nothing.
#pragma once

#include "tools/ztcp_setup/host/host.h"
#include "tools/ztcp_setup/report/outcome.h"
#include "tools/ztcp_setup/run/journal.h"

namespace ztcp::setup {

UndoPreview preview_undo(Host& host, const Journal& journal);

}  // namespace ztcp::setup
