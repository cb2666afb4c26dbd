// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The kernel's name of a kernel NIC's interface.
#pragma once

#include <string>

#include "config/settings.h"

namespace ztcp::config {

// The name in sysfs, in "ip link" and in nft. An address with its own label is named by that:
// "eth1:2" is on eth1.
inline std::string device_of(const Nic& nic) {
  return nic.interface.substr(0, nic.interface.find(':'));
}

}  // namespace ztcp::config
