// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A config of one memif NIC, as set-up writes it.
#pragma once

#include "config/settings.h"

namespace ztcp::test {

inline config::Fabric memif_fabric() {
  config::Fabric fabric;
  fabric.path = "/etc/ztcp.conf";
  config::Nic nic;
  nic.name = "ztcp0";
  nic.driver = config::NicDriver::kMemif;
  nic.memif_socket = "/run/ztcp.sock";
  nic.memif_id = 3;
  nic.address = *parse_ipv4_prefix("10.77.1.10/24");
  nic.mtu_bytes = 9000;
  nic.speed_mbps = 25000;
  fabric.nics.push_back(nic);
  return fabric;
}

}  // namespace ztcp::test
