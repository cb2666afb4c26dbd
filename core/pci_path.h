// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Names of PCI functions, and the sysfs directory of a kernel device's PCI function.
#pragma once

#include <string>
#include <string_view>

namespace ztcp {

// "0000:3b:00.0": lower case, as in sysfs.
bool is_pci_address(std::string_view text);

// "/sys/devices/pci0000:00/0000:00:03.0" for a device on that PCI function, also behind another bus
// such as virtio's; `device` is its link: "/sys/class/net/eth0/device". Empty: it has none.
std::string pci_path_of(const std::string& sys_root, const std::string& device);

}  // namespace ztcp
