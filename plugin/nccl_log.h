// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Binds core/log to the logger NCCL hands to init.
#pragma once

#include "plugin/abi/nccl_abi.h"

namespace ztcp::plugin {

// Lines go to `logger` from now on; nullptr: nowhere. The last one bound wins, which is right:
// there is one NCCL behind all of them, and an unloaded one is never called again.
void bind_nccl_log(ncclDebugLogger_t logger) noexcept;

}  // namespace ztcp::plugin
