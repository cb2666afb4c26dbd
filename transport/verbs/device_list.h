// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// From the fabric's RDMA NICs and merged interfaces, or from none, to the devices of the transport.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "config/settings.h"
#include "core/local_addresses.h"
#include "transport/verbs/api.h"
#include "transport/verbs/device.h"
#include "transport/verbs/nccl_variables.h"

namespace ztcp::verbs {

// Whether this transport serves such a NIC.
bool carries(const config::Nic& nic);

// The devices of the fabric's NICs, in order; all NICs must be of this transport. If a device can't
// be used, its fault says why.
std::vector<Device> devices_of(const Api& api, const config::Fabric& fabric,
                               const NcclVariables& variables, std::span<const LocalAddress> all,
                               const std::string& sys_root = "/sys");

// The same without a library for RDMA devices, for the reason `why`: merged kernel interfaces serve
// alone. Empty: no interface is merged.
std::vector<Device> devices_without_library(const std::string& why, const config::Fabric& fabric,
                                            const NcclVariables& variables,
                                            std::span<const LocalAddress> all,
                                            const std::string& sys_root = "/sys");

// For the init line of the device.
std::string device_text(const Device& device);

}  // namespace ztcp::verbs
