// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What the kernel calls the interface of a NIC that stays with it.
#pragma once

#include <string>

#include "config/settings.h"

namespace ztcp::config {

// The word of its sysfs folder, of "ip link" and of nft. An address with a label of its own is
// known by that: "eth1:2" is on eth1.
inline std::string device_of(const Nic& nic) {
  return nic.interface.substr(0, nic.interface.find(':'));
}

}  // namespace ztcp::config
