// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The minimal settings of each NIC driver.
#pragma once

#include "config/settings.h"

namespace ztcp::test {

// A NIC with the required keys of all drivers except the name.
inline config::Nic some_nic(config::NicDriver driver) {
  config::Nic nic;
  nic.name = "ztcp0";
  nic.driver = driver;
  nic.address = *parse_ipv4_prefix("10.0.0.1/24");
  if (driver == config::NicDriver::kPci || driver == config::NicDriver::kMemif ||
      driver == config::NicDriver::kTap)
    nic.mac = *parse_mac("02:00:00:00:00:01");
  if (driver == config::NicDriver::kPci) nic.pci = "0000:3b:00.0";
  if (driver == config::NicDriver::kMemif) nic.memif_socket = "/run/a.sock";
  if (driver == config::NicDriver::kTap) nic.tap_interface = "tap0";
  if (driver == config::NicDriver::kSocket || config::is_past_kernel(driver))
    nic.interface = "eth0";
  if (config::is_past_kernel(driver)) {
    nic.first_port = 61000;
    nic.last_port = 65535;
  }
  if (driver == config::NicDriver::kVerbs) nic.device = "mlx5_0";
  return nic;
}

inline config::Fabric some_fabric(config::NicDriver driver) {
  config::Fabric fabric;
  fabric.path = "/etc/ztcp.conf";
  if (config::is_dpdk_nic(driver)) fabric.hugepages.page_kib = 2048;
  fabric.nics.push_back(some_nic(driver));
  return fabric;
}

}  // namespace ztcp::test
