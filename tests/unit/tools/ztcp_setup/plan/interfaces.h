// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Plans over interfaces that stay with the kernel.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "tools/ztcp_setup/plan/plan.h"

namespace ztcp::setup::test {

// Formats "ens6 10.77.6.5/24".
inline std::vector<std::string> interfaces_of(const Plan& plan) {
  std::vector<std::string> interfaces;
  if (plan.fabric)
    for (const config::Nic& nic : plan.fabric->nics)
      interfaces.push_back(nic.interface + " " + to_string(nic.address));
  return interfaces;
}

inline std::string unfit_of_interface(const Plan& plan, std::string_view interface) {
  for (const config::HostNic& nic : plan.topology.nics)
    if (nic.interface == interface) return nic.unfit;
  return "no such NIC";
}

inline std::string replaced(std::string text, std::string_view from, std::string_view to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
    text.replace(at, from.size(), to);
  return text;
}

// Two NICs with addresses beside the default route's, and a GPU.
inline std::string three_nics() {
  return "node id=0 cpus=0-7 memory_mib=65536\n"
         "file path=etc/machine-id text=55555555555555555555555555555555\n"
         "pci path=pci0000:00/0000:00:1e.0 id=10de:1eb8 class=030200 numa=0 driver=nvidia\n"
         "pci path=pci0000:00/0000:00:05.0 id=15b3:101e class=020000 numa=0 driver=mlx5_core\n"
         "net path=pci0000:00/0000:00:05.0 name=eth0 mac=0a:00:00:00:00:05 mtu=1500 speed=100000\n"
         "pci path=pci0000:00/0000:00:06.0 id=15b3:101e class=020000 numa=0 driver=mlx5_core\n"
         "net path=pci0000:00/0000:00:06.0 name=eth1 mac=0a:00:00:00:00:06 mtu=9000 speed=100000\n"
         "pci path=pci0000:00/0000:00:07.0 id=15b3:101e class=020000 numa=0 driver=mlx5_core\n"
         "net path=pci0000:00/0000:00:07.0 name=eth2 mac=0a:00:00:00:00:07 mtu=9000 speed=100000\n"
         "address if=eth0 ip=10.0.0.5/24\n"
         "address if=eth1 ip=10.1.0.5/24\n"
         "address if=eth2 ip=10.2.0.5/24\n"
         "route if=eth0 via=10.0.0.1\n";
}

}  // namespace ztcp::setup::test
