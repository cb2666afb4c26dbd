// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Whether a device reads and writes GPU memory by itself, and why not.
#pragma once

#include <string>

#include "transport/core/clock.h"
#include "transport/verbs/device.h"

namespace ztcp::verbs {

// Of an open device: by DMA-BUFs, which the kernel and the device's driver must know, or by a
// module that gives it GPU addresses. One of iWARP must be able to flush what it wrote there, which
// is tried for little longer than `joined_within`.
void probe_gpu_direct(Device& device, const std::string& sys_root, Duration joined_within);

}  // namespace ztcp::verbs
