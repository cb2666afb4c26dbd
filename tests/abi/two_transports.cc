// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The transports of a module under test: ustack, and beside it one in memory that can what an RDMA
// NIC can, for the NICs that the config calls memory*.
#include "tests/abi/two_transports.h"

#include <string_view>
#include <vector>

#include "plugin/startup.h"
#include "tests/support/memory_transport.h"
#include "transport/ustack/ustack_transport.h"

namespace ztcp::plugin {
namespace {

bool is_in_memory(const config::Nic& nic) { return nic.name.starts_with("memory"); }

Result<std::unique_ptr<Transport>> make_memory(const config::Fabric& fabric) {
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
  return std::make_unique<test::MemoryTransport>(std::move(devices), TransportKind::kVerbs);
}

}  // namespace

std::vector<TransportSource> transport_sources() {
  return {
      {.kind = TransportKind::kVerbs, .carries = is_in_memory, .create = make_memory},
      {.kind = TransportKind::kUstack,
       .carries = [](const config::Nic& nic) { return !is_in_memory(nic) && ustack::carries(nic); },
       .create = test::make_ustack}};
}

}  // namespace ztcp::plugin
