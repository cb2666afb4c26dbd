// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The real verbs transport over in-memory devices: one of InfiniBand for each NIC, with connections
// negotiated over loopback, and with GPU memory for NICs named memory*.
#include <vector>

#include "core/local_addresses.h"
#include "tests/abi/two_transports.h"
#include "tests/support/verbs/fake_fabric.h"
#include "transport/verbs/device_list.h"
#include "transport/verbs/verbs_transport.h"

namespace ztcp::test {

Result<std::unique_ptr<Transport>> make_rdma(const config::Fabric& fabric) {
  config::Fabric over = fabric;
  std::vector<FakeDeviceSpec> specs;
  for (config::Nic& nic : over.nics) {
    FakeDeviceSpec& spec = specs.emplace_back();
    spec.name = "fake" + std::to_string(specs.size() - 1);
    spec.ports[0].link_layer = IBV_LINK_LAYER_INFINIBAND;
    spec.ports[0].lid = static_cast<std::uint16_t>(specs.size());
    ibv_gid gid{};
    gid.raw[15] = static_cast<std::uint8_t>(specs.size());
    spec.ports[0].gids = {gid};
    spec.knows_dmabuf = spec.has_peer_memory = nic.name.starts_with("memory");
    nic.driver = config::NicDriver::kVerbs;
    nic.device = spec.name;
    nic.address = *parse_ip_prefix("127.0.0.1/8");
    nic.first_port = nic.last_port = 0;
  }
  // NCCL's threads may be inside when the process ends.
  static auto* const network = new FakeFabric(std::move(specs), 7);
  std::vector<verbs::Device> devices =
      verbs::devices_of(*network->api(), over, {}, local_addresses());
  // No kernel module reports that these devices support GPU memory.
  for (verbs::Device& device : devices) {
    // NICs have a PCI function: those without one are not merged.
    device.pci_path = "/sys/devices/pci0000:00/0000:00:02.0";
    if (!device.has_dmabuf) continue;
    device.has_peer_memory = true;
    device.gpu_direct = "on (in memory)";
  }
  return verbs::create(over, std::move(devices));
}

}  // namespace ztcp::test
