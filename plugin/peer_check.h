// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Reads the peer from a handle for connect(), or reports in one line why this rank and the handle's
// do not fit together. Pure except for that line; any thread.
#pragma once

#include <cstddef>
#include <string>

#include "plugin/agreement.h"
#include "plugin/handle.h"
#include "plugin/report.h"

namespace ztcp::plugin {

// Returns the peer, or reports a poisoned handle, one of another network or of another version.
Told<PeerHandle> read_peer(ConstHandleBytes handle);

// Reports each value that all ranks must share and that differs between these two. `device` is the
// name of the connecting device.
Told<void> check_agreement(const std::string& device, const Issuer& ours, const Issuer& theirs);

// Explains why a device that NCCL names does not exist: this rank shows `shown` devices, and NCCL
// used the count of another rank of the host, which shows more.
std::string explain_unshown(int device, std::size_t shown);

}  // namespace ztcp::plugin
