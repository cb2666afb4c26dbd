// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// From the fabric's NICs that stay with the kernel, or from none, to the devices of the transport.
#pragma once

#include <span>
#include <string>
#include <vector>

#include <tl/expected.hpp>

#include "config/settings.h"
#include "transport/core/local_addresses.h"
#include "transport/core/result.h"
#include "transport/sockets/device.h"
#include "transport/sockets/interface_choice.h"

namespace ztcp::sockets {

// Whether it is for sockets to carry such a NIC.
bool carries(const config::Nic& nic);

// Of the fabric's NICs, all of them such, in their order. What the config leaves open is read from
// `sys_root`, as NCCL's sockets read it; but a NIC behind another bus (virtio) is given the PCI
// function that this one is on, so that NCCL knows which GPUs are near.
Result<std::vector<Device>> devices_of(const config::Fabric& fabric,
                                       std::span<const LocalAddress> all,
                                       const std::string& sys_root = "/sys");

// For the line that init says of it: "eth1 10.0.0.5, PCI 0000:17:00.0, 25000 Mb/s, ...".
std::string device_text(const Device& device);

// `settings` with the interfaces for NICs that the request means, named as these are and listening
// where the kernel chooses: what is had where sockets were asked for and no config names any. An
// error is why there is none, with what there is.
tl::expected<config::Fabric, std::string> fabric_of(config::Fabric settings,
                                                    const InterfaceRequest& request,
                                                    std::span<const LocalAddress> all);

}  // namespace ztcp::sockets
