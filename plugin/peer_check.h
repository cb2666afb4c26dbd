// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What a handle tells connect(): the peer to connect to, or the one line that says why this rank
// and the handle's do not go together. Pure but for that line; any thread.
#pragma once

#include <cstddef>
#include <string>

#include "plugin/agreement.h"
#include "plugin/handle.h"
#include "plugin/report.h"

namespace ztcp::plugin {

// Returns the peer, or reports a poisoned handle, one of another network or of another version.
Told<PeerHandle> read_peer(ConstHandleBytes handle);

// Reports each value that all ranks must share and these two do not. `device`: the name of the
// connecting device.
Told<void> check_agreement(const std::string& device, const Issuer& ours, const Issuer& theirs);

// Why a device that NCCL names does not exist: this rank shows `shown` devices, and another rank of
// the host, by whose count NCCL went, shows more.
std::string explain_unshown(int device, std::size_t shown);

}  // namespace ztcp::plugin
