// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Derives an engine's config and NCCL's device properties from the fabric config and the link's
// capabilities.
#pragma once

#include <string>

#include "config/settings.h"
#include "core/result.h"
#include "transport/link/link.h"
#include "transport/transport.h"
#include "transport/ustack/engine/engine.h"

namespace ztcp::ustack {

// Draws the secret. Fails only when getrandom() fails or cluster_key is not 64 hex digits.
Result<EngineConfig> engine_config(const config::Fabric& fabric, const config::Nic& nic,
                                   const link::LinkCapabilities& link);

// Number of NCCL devices that the NIC is exposed as. `tunes_channels`: collectives are kept off
// most of them (Fabric::tunes_channels).
int nccl_devices(const config::Fabric& fabric, const config::Nic& nic, bool tunes_channels);
DeviceProperties device_properties(const config::Fabric& fabric, const config::Nic& nic,
                                   const std::string& sys_root = "/sys");

}  // namespace ztcp::ustack
