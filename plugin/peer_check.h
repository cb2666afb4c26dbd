// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What connect() makes of a handle before any byte leaves: the peer to connect to, or the one line
// that says why this rank and the handle's don't go together. Pure but for that line; any thread.
#pragma once

#include <cstddef>
#include <string>

#include "plugin/agreement.h"
#include "plugin/handle.h"
#include "plugin/report.h"

namespace ztcp::plugin {

// Reports what is no peer: a poisoned handle, another network's, another version's.
Told<PeerHandle> read_peer(ConstHandleBytes handle);

// Reports how the ranks differ in what all must share. `device`: that connects, by name.
Told<void> check_agreement(const std::string& device, const Issuer& ours, const Issuer& theirs);

// Why a device that NCCL names does not exist: this rank shows `shown` devices, and another rank of
// the host, by whose count NCCL went, shows more.
std::string explain_unshown(int device, std::size_t shown);

}  // namespace ztcp::plugin
