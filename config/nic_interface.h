// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Names that belong to a kernel NIC's interface.
#pragma once

#include <string>

#include "config/settings.h"

namespace ztcp::config {

// The name in sysfs, in "ip link" and in nft. An address with its own label is named by that:
// "eth1:2" is on eth1.
inline std::string device_of(const Nic& nic) {
  return nic.interface.substr(0, nic.interface.find(':'));
}

// Where set-up pins the XDP program of an interface: in a file system of type bpf of ztcp's own,
// since only root may enter the one that systemd mounts.
inline constexpr const char* kBpfFolder = "/run/ztcp-bpf";
inline std::string xdp_pin_folder(const std::string& interface) {
  return std::string(kBpfFolder) + "/" + interface;
}

}  // namespace ztcp::config
