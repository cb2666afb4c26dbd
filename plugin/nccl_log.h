// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Binds core/log to the logger NCCL hands to init.
#pragma once

#include "plugin/abi/nccl_abi.h"

namespace ztcp::plugin {

// Sends log lines to `logger` from now on; nullptr: nowhere. The last binding wins: all loggers
// belong to the one NCCL of the process, and the logger of an unloaded NCCL is never called again.
void bind_nccl_log(ncclDebugLogger_t logger) noexcept;

}  // namespace ztcp::plugin
