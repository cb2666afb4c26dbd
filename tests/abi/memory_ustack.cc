// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Stands in for the ustack transport in libnccl-net-memory.so: the whole plugin, with start-up,
// config and process end, over an in-memory transport. Its tests need no NIC, no DPDK and no
// privilege, and can run under sanitizers.
#include "tests/support/memory_transport.h"
#include "transport/ustack/nic_config.h"
#include "transport/ustack/ustack_transport.h"

namespace ztcp::ustack {

bool carries(const config::Nic& nic) { return nic.driver != config::NicDriver::kSocket; }

bool is_shown_often(const config::Fabric& /*fabric*/) { return false; }

int nccl_devices(const config::Fabric& /*fabric*/, const config::Nic& /*nic*/,
                 bool /*tunes_channels*/) {
  return 1;
}

Result<std::unique_ptr<Transport>> create(const config::Fabric& fabric,
                                          const config::CpuShare& /*cpus*/, GpuProbe /*probe*/) {
  std::vector<DeviceProperties> devices;
  for (const config::Nic& nic : fabric.nics) {
    DeviceProperties device;
    device.name = nic.name;
    device.max_receives = static_cast<int>(kMaxReceives);
    devices.push_back(std::move(device));
  }
  return std::make_unique<test::MemoryTransport>(std::move(devices));
}

}  // namespace ztcp::ustack
