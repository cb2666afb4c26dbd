// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Whether a device reads and writes GPU memory by itself, and why not.
#pragma once

#include <string>

#include "transport/verbs/device.h"

namespace ztcp::verbs {

// Of an open device: by DMA-BUFs, which the kernel and the device's driver must know, or by a
// module that gives it GPU addresses.
void probe_gpu_direct(Device& device, const std::string& sys_root);

}  // namespace ztcp::verbs
