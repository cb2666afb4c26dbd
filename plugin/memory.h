// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Registers memory with a comm, and reports the reason where that fails.
#pragma once

#include "plugin/report.h"
#include "transport/transport.h"

namespace ztcp::plugin {

Told<MemoryKey*> register_memory(Comm& comm, const Region& region);
// nullptr is ignored.
Told<void> deregister_memory(Comm& comm, MemoryKey* key);

}  // namespace ztcp::plugin
