// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// From the fabric's RDMA NICs and merged interfaces, or from none, to the devices of the transport.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "config/settings.h"
#include "transport/core/local_addresses.h"
#include "transport/verbs/api.h"
#include "transport/verbs/device.h"
#include "transport/verbs/nccl_variables.h"

namespace ztcp::verbs {

// Whether it is for this transport to carry such a NIC.
bool carries(const config::Nic& nic);

// Of the fabric's NICs, all of them such, in their order; one that can't be had says why in its
// fault.
std::vector<Device> devices_of(const Api& api, const config::Fabric& fabric,
                               const NcclVariables& variables, std::span<const LocalAddress> all,
                               const std::string& sys_root = "/sys");

// The same where there is no library for RDMA devices, says `why`: interfaces of the kernel's serve
// without them. Empty: none is merged.
std::vector<Device> devices_without_library(const std::string& why, const config::Fabric& fabric,
                                            const NcclVariables& variables,
                                            std::span<const LocalAddress> all,
                                            const std::string& sys_root = "/sys");

// For the line that init says of it.
std::string device_text(const Device& device);

}  // namespace ztcp::verbs
