// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tests/support/verbs/fake_calls.h"

#include <cstring>

#include "tests/support/verbs/fake_manager.h"

namespace ztcp::test {

FakeFabric* FakeCalls::the_fabric = nullptr;

const verbs::Api& FakeCalls::table() {
  static const verbs::Api kTable{.get_device_list = get_device_list,
                                 .free_device_list = free_device_list,
                                 .open_device = open_device,
                                 .close_device = close_device,
                                 .query_device = query_device,
                                 .query_port = query_port,
                                 .query_gid = query_gid,
                                 .get_async_event = get_async_event,
                                 .ack_async_event = ack_async_event,
                                 .event_type_str = event_type_str,
                                 .alloc_pd = alloc_pd,
                                 .dealloc_pd = dealloc_pd,
                                 .reg_mr = reg_mr,
                                 .dereg_mr = dereg_mr,
                                 .create_cq = create_cq,
                                 .destroy_cq = destroy_cq,
                                 .create_qp = create_qp,
                                 .modify_qp = modify_qp,
                                 .destroy_qp = destroy_qp,
                                 .fork_init = fork_init,
                                 .reg_dmabuf_mr = reg_dmabuf_mr,
                                 .reg_mr_iova2 = reg_mr_iova2,
                                 .query_ece = query_ece,
                                 .set_ece = set_ece,
                                 .query_port_speed = query_port_speed,
                                 .connection_manager = FakeManager::open};
  return kTable;
}

const verbs::Api* FakeFabric::api() const { return &FakeCalls::table(); }

FakeFabric::FakeFabric(std::vector<FakeDeviceSpec> devices, std::uint64_t seed) : random_(seed) {
  for (FakeDeviceSpec& spec : devices) {
    auto device = std::make_unique<FakeDevice>();
    device->node_type = IBV_NODE_CA;
    device->transport_type = spec.is_iwarp ? IBV_TRANSPORT_IWARP : spec.transport;
    device->managers.device = device.get();
    std::strncpy(device->name, spec.name.c_str(), sizeof device->name - 1);
    device->spec = std::move(spec);
    devices_.push_back(std::move(device));
  }
  FakeCalls::the_fabric = this;
}

FakeFabric::~FakeFabric() { FakeCalls::the_fabric = nullptr; }

}  // namespace ztcp::test
