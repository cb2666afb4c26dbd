// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Makes the transport's devices from the config's NICs, or from interfaces chosen without a config.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "config/settings.h"
#include "core/local_addresses.h"
#include "core/result.h"
#include "transport/sockets/kernel/device.h"
#include "transport/sockets/kernel/interface_choice.h"

namespace ztcp::sockets {

// Whether the sockets transport serves this NIC.
bool carries(const config::Nic& nic);

// The devices for the fabric's NICs, in their order; carries() each. Properties that the config
// leaves open are read from `sys_root`, as NCCL's sockets read them, with one difference: a NIC on
// another bus (virtio) gets the PCI function behind it, so that NCCL knows which GPUs are near.
Result<std::vector<Device>> devices_of(const config::Fabric& fabric,
                                       std::span<const LocalAddress> all,
                                       const std::string& sys_root = "/sys");

// For the device's init line: "eth1 10.0.0.5, PCI 0000:17:00.0, 25000 Mb/s, ...".
std::string device_text(const Device& device);

// For a host whose config names no NIC: `settings` with the interfaces that `request` selects as
// NICs, each named like its interface and listening at a port that the kernel chooses. The error
// lists the interfaces of this host, of which none fits.
Result<config::Fabric, std::string> fabric_of(config::Fabric settings,
                                              const InterfaceRequest& request,
                                              std::span<const LocalAddress> all);

}  // namespace ztcp::sockets
