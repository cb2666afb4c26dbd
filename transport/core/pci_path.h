// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// PCI functions by their names, and where in sysfs a device of the kernel's lies.
#pragma once

#include <string>
#include <string_view>

namespace ztcp {

// "0000:3b:00.0", as sysfs names PCI functions: lower case.
bool is_pci_address(std::string_view text);

// "/sys/devices/pci0000:00/0000:00:03.0" for what lies on that PCI function, whatever lies between,
// such as virtio's bus; `device` is its link: "/sys/class/net/eth0/device". Empty: it is on none.
std::string pci_path_of(const std::string& sys_root, const std::string& device);

}  // namespace ztcp
