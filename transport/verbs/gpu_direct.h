// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Whether a device reads and writes GPU memory by itself, and why not.
#pragma once

#include <string>

#include "core/clock.h"
#include "transport/verbs/device.h"

namespace ztcp::verbs {

// Finds out how an open device can reach GPU memory: by DMA-BUFs, which the kernel and the device's
// driver must support, or by a module that maps GPU addresses. A device of iWARP must also be able
// to flush its writes; the trial takes little longer than `joined_within`.
void probe_gpu_direct(Device& device, const std::string& sys_root, Duration joined_within);

}  // namespace ztcp::verbs
