// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/open_devices.h"

#include <cerrno>
#include <cstring>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "transport/verbs/connection_manager.h"

namespace ztcp::verbs {
namespace {

const char* opening_advice(int error) {
  switch (error) {
    case EACCES:
    case EPERM:
      return "; this user needs /dev/infiniband/uverbs* (mode 0666 by rdma-core's udev rules; in a "
             "container pass the devices in)";
    case ENOENT:
    case ENXIO:
    case ENODEV:
      return "; /dev/infiniband/uverbs* is not here: start the container with --device "
             "/dev/infiniband; on a host sudo modprobe ib_uverbs";
    default:
      return "";
  }
}

}  // namespace

ibv_device* DeviceList::find(const std::string& name) const {
  for (ibv_device* const one : all())
    if (name == one->name) return one;
  return nullptr;
}

std::string DeviceList::names() const {
  std::vector<std::string> names;
  for (const ibv_device* const one : all()) names.emplace_back(one->name);
  return names.empty() ? "no RDMA device" : fmt::format("{}", fmt::join(names, ", "));
}

Opened open_device(const Api& api, ibv_device* device) {
  auto out = std::make_shared<OpenDevice>();
  out->api = &api;
  out->name = device->name;
  out->context = ContextHandle(api.open_device(device), {&api});
  if (!out->context) {
    const int error = errno;
    return tl::unexpected(fmt::format("{} can't be opened: {}{}", device->name,
                                      std::strerror(error), opening_advice(error)));
  }
  out->domain = DomainHandle(api.alloc_pd(out->context.get()), {&api});
  if (!out->domain)
    return tl::unexpected(
        fmt::format("{} gives no protection domain: {}", device->name, std::strerror(errno)));
  return out;
}

// AWS's EFA and Cisco's usNIC adapters offer only datagrams.
std::string fault_of_kind(const ibv_device& device, std::uint8_t port, const ibv_port_attr& attr) {
  const bool is_known =
      device.transport_type == IBV_TRANSPORT_IB || device.transport_type == IBV_TRANSPORT_IWARP;
  if (is_known && attr.link_layer != IBV_LINK_LAYER_UNSPECIFIED) return {};
  return fmt::format(
      "port {} of {} is neither InfiniBand, RoCE nor iWARP and has no reliable connections (as EFA "
      "and usNIC): use ZTCP_TRANSPORT=sockets over its host's interfaces",
      port, device.name);
}

const char* state_text(ibv_port_state state) {
  switch (state) {
    case IBV_PORT_DOWN:
      return "down: plug the cable in, or ip link set up its interface";
    case IBV_PORT_INIT:
      return "initialising: InfiniBand needs a subnet manager (opensm)";
    case IBV_PORT_ARMED:
      return "armed and not active: ask the subnet manager";
    default:
      return "not active";
  }
}

// Its queue pairs use TCP connections of the device itself, at the address that peers dial.
std::string read_iwarp(Device& device) {
  const auto manager = device.opened->api->connection_manager();
  if (!manager)
    return fmt::format("{} is an iWARP device, and librdmacm joins its queue pairs: {}", device.hca,
                       manager.error());
  device.opened->manager = *manager;
  device.address.gid.gid = gid_of(device.exchange.address);
  if (!device.merge.empty())
    return fmt::format(
        "{} is an iWARP device, and they are not merged: remove merge from the config", device.hca);
  return fault_of_manager(**manager, device);
}

}  // namespace ztcp::verbs
