// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <vector>

#include "tests/abi/two_transports.h"
#include "tests/support/memory_transport.h"

namespace ztcp::test {

Result<std::unique_ptr<Transport>> make_rdma(const config::Fabric& fabric) {
  std::vector<DeviceProperties> devices;
  for (const config::Nic& nic : fabric.nics) {
    DeviceProperties device;
    device.name = nic.name;
    device.guid = 1000 + devices.size();
    device.max_receives = static_cast<int>(kMaxReceives);
    device.cuda_pointers = true;
    device.dmabuf = true;
    device.force_flush = true;
    devices.push_back(std::move(device));
  }
  return std::make_unique<MemoryTransport>(std::move(devices), TransportKind::kVerbs);
}

}  // namespace ztcp::test
