// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/device_list.h"

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "config/nic_interface.h"
#include "transport/core/pci_path.h"
#include "transport/sockets/device_list.h"
#include "transport/verbs/connection_manager.h"
#include "transport/verbs/device_settings.h"
#include "transport/verbs/gpu_direct.h"
#include "transport/verbs/link_speed.h"

namespace ztcp::verbs {
namespace {

namespace fs = std::filesystem;

// All devices that the library shows; a list that lives as long as it is looked at.
class DeviceList {
 public:
  explicit DeviceList(const Api& api) : api_(api), list_(api.get_device_list(&count_)) {}
  ~DeviceList() {
    if (list_ != nullptr) api_.free_device_list(list_);
  }
  DeviceList(const DeviceList&) = delete;
  DeviceList& operator=(const DeviceList&) = delete;

  std::span<ibv_device* const> all() const {
    return {list_, list_ == nullptr ? 0 : static_cast<std::size_t>(count_)};
  }
  ibv_device* find(const std::string& name) const {
    for (ibv_device* const one : all())
      if (name == one->name) return one;
    return nullptr;
  }
  std::string names() const {
    std::vector<std::string> names;
    for (const ibv_device* const one : all()) names.emplace_back(one->name);
    return names.empty() ? "no RDMA device" : fmt::format("{}", fmt::join(names, ", "));
  }

 private:
  const Api& api_;
  int count_ = 0;
  ibv_device** list_;
};

using Opened = tl::expected<std::shared_ptr<OpenDevice>, std::string>;

Opened open(const Api& api, ibv_device* device) {
  auto out = std::make_shared<OpenDevice>();
  out->api = &api;
  out->name = device->name;
  out->context = ContextHandle(api.open_device(device), {&api});
  if (!out->context) {
    const int error = errno;
    return tl::unexpected(fmt::format(
        "{} can't be opened: {}{}", device->name, std::strerror(error),
        error == EACCES || error == EPERM ? "; this user needs /dev/infiniband/uverbs* (mode 0666 "
                                            "by rdma-core's udev rules; in a "
                                            "container pass the devices in)"
                                          : ""));
  }
  out->domain = DomainHandle(api.alloc_pd(out->context.get()), {&api});
  if (!out->domain)
    return tl::unexpected(
        fmt::format("{} gives no protection domain: {}", device->name, std::strerror(errno)));
  return out;
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

// Its queue pairs go over TCP connections of its own at the address that peers find it at.
std::string read_iwarp(Device& device) {
  const auto manager = device.opened->api->connection_manager();
  if (!manager)
    return fmt::format("{} is an iWARP device, whose queue pairs librdmacm joins: {}", device.hca,
                       manager.error());
  device.opened->manager = *manager;
  device.address.gid.gid = gid_of(device.exchange.address);
  if (!device.merge.empty())
    return fmt::format(
        "{} is an iWARP device, and they are not merged: remove merge from the config", device.hca);
  return fault_of_manager(**manager, device);
}

// What the port says; the text is why it can't be used.
std::string read_port(Device& device, const config::Nic& nic, const NcclVariables& variables,
                      const fs::path& sys_root) {
  const Api& api = *device.opened->api;
  ibv_context* const context = device.opened->context.get();
  device.is_iwarp = context->device->transport_type == IBV_TRANSPORT_IWARP;
  ibv_device_attr own{};
  if (api.query_device(context, &own) == 0) device.guid = own.node_guid + device.port;
  ibv_port_attr attr{};
  if (const int error = api.query_port(context, device.port, &attr); error != 0)
    return fmt::format("{} has no port {} ({})", device.hca, device.port, std::strerror(error));
  device.is_infiniband = attr.link_layer == IBV_LINK_LAYER_INFINIBAND;
  take_threshold(device, nic, variables);
  device.needs_grh = (attr.flags & IBV_QPF_GRH_REQUIRED) != 0;
  device.mtu_bytes = 128U << static_cast<unsigned>(attr.active_mtu);
  const std::uint32_t told =
      nic.speed_mbps != 0 ? nic.speed_mbps : link_mbps(attr.active_speed, attr.active_width);
  if (told != 0) device.speed_mbps = told;
  if (attr.state != IBV_PORT_ACTIVE)
    return fmt::format("port {} of {} is {}", device.port, device.hca, state_text(attr.state));
  if (device.is_iwarp) return read_iwarp(device);

  device.gid_rule.types = (sys_root / "class/infiniband" / device.hca / "ports" /
                           std::to_string(device.port) / "gid_attrs/types")
                              .string();
  if (nic.gid_index >= 0) {
    device.gid_rule.index = nic.gid_index;
    device.gid_rule.by = "gid_index of the config";
  } else if (variables.gid_index >= 0) {
    device.gid_rule.index = variables.gid_index;
    device.gid_rule.by = "NCCL_IB_GID_INDEX";
  }
  auto address = read_address(*device.opened, device.port, device.gid_rule);
  if (!address) return std::move(address.error());
  device.address = *address;
  return {};
}

// Where peers find the listener; the text is why they can't.
std::string read_exchange(Device& device, const config::Nic& nic,
                          std::span<const LocalAddress> all) {
  const auto own = std::find_if(all.begin(), all.end(), [&](const LocalAddress& one) {
    return one.prefix.address == nic.address.address;
  });
  device.exchange.name = nic.name;
  device.exchange.address = nic.address.address;
  device.exchange.first_port = nic.first_port;
  device.exchange.last_port = nic.last_port;
  if (own == all.end())
    return fmt::format("its address {} is none of this host's; correct it in the config",
                       to_string(nic.address));
  device.exchange.interface = own->interface;
  device.exchange.scope = own->prefix.address.is_link_local_v6() ? own->index : 0;
  return {};
}

Device describe(const config::Nic& nic, const NcclVariables& variables) {
  Device device;
  device.name = nic.name;
  device.hca = nic.device;
  device.port = static_cast<std::uint8_t>(nic.device_port);
  device.gpu_pci = nic.gpu_pci;
  device.gpu_uuid = nic.gpu_uuid;
  device.merge = nic.merge;
  device.may_merge = variables.merges;
  device.numa_node = nic.numa_node;
  if (nic.speed_mbps != 0) device.speed_mbps = nic.speed_mbps;
  take_settings(device, nic, variables);
  return device;
}

// An interface whose TCP is a rail. What can't be had is its own fault.
Device describe_tcp(const config::Fabric& fabric, const config::Nic& nic,
                    std::span<const LocalAddress> all, const std::string& sys_root) {
  Device device;
  device.name = nic.name;
  device.is_tcp = true;
  device.hca = config::device_of(nic);
  device.merge = nic.merge;
  device.gpu_pci = nic.gpu_pci;
  device.gpu_uuid = nic.gpu_uuid;
  config::Fabric alone = fabric;
  alone.nics = {nic};
  const auto found = sockets::devices_of(alone, all, sys_root);
  if (!found) {
    device.fault = fmt::format("its address {} is not on {}; correct it in the config",
                               to_string(nic.address), device.hca);
    return device;
  }
  device.exchange = found->front();
  device.speed_mbps = device.exchange.speed_mbps;
  device.pci_path = device.exchange.pci_path;
  device.numa_node = device.exchange.numa_node;
  return device;
}

std::string gpu_text(const Device& device) {
  if (!device.gpu_pci.empty()) return "GPU " + device.gpu_pci;
  return device.gpu_uuid.empty() ? "any GPU" : device.gpu_uuid;
}

}  // namespace

bool carries(const config::Nic& nic) {
  return nic.driver == config::NicDriver::kVerbs || config::is_merged_socket(nic);
}

std::vector<Device> devices_of(const Api& api, const config::Fabric& fabric,
                               const NcclVariables& variables, std::span<const LocalAddress> all,
                               const std::string& sys_root) {
  // On kernels before 5.12 a forked data loader's writes would move pages away from the NIC.
  api.fork_init();
  const DeviceList list(api);
  std::map<std::string, Opened> opened;
  std::vector<Device> devices;
  for (const config::Nic& nic : fabric.nics) {
    if (config::is_merged_socket(nic)) {
      devices.push_back(describe_tcp(fabric, nic, all, sys_root));
      continue;
    }
    Device& device = devices.emplace_back(describe(nic, variables));
    device.choice = "by " + fabric.path;
    device.fault = read_exchange(device, nic, all);
    if (variables.is_disabled) device.fault = "NCCL_IB_DISABLE=1 forbids RDMA devices: unset it";
    ibv_device* const found = list.find(device.hca);
    if (found == nullptr) {
      device.fault =
          fmt::format("no RDMA device {} is here; this host has {}", device.hca, list.names());
      continue;
    }
    auto known = opened.find(device.hca);
    if (known == opened.end()) known = opened.emplace(device.hca, open(api, found)).first;
    if (!known->second) {
      device.fault = known->second.error();
      continue;
    }
    device.opened = *known->second;
    const fs::path folder = fs::path(sys_root) / "class/infiniband" / device.hca;
    device.pci_path = pci_path_of(sys_root, folder / "device");
    if (device.numa_node < 0 && !device.pci_path.empty()) {
      std::ifstream node(fs::path(device.pci_path) / "numa_node");
      if (!(node >> device.numa_node)) device.numa_node = -1;
    }
    if (std::string fault = read_port(device, nic, variables, sys_root); device.fault.empty())
      device.fault = std::move(fault);
    probe_gpu_direct(device, sys_root, std::chrono::milliseconds(fabric.tcp.connect_timeout_ms));
  }
  return devices;
}

std::vector<Device> devices_without_library(const std::string& why, const config::Fabric& fabric,
                                            const NcclVariables& variables,
                                            std::span<const LocalAddress> all,
                                            const std::string& sys_root) {
  std::vector<Device> devices;
  if (std::none_of(fabric.nics.begin(), fabric.nics.end(), config::is_merged_socket))
    return devices;
  for (const config::Nic& nic : fabric.nics) {
    if (config::is_merged_socket(nic))
      devices.push_back(describe_tcp(fabric, nic, all, sys_root));
    else
      devices.emplace_back(describe(nic, variables)).fault = why;
  }
  return devices;
}

std::string device_text(const Device& device) {
  if (!device.fault.empty()) return "refuses all connections: " + device.fault;
  if (device.is_tcp)
    return fmt::format("TCP, of host memory alone, on {}", sockets::device_text(device.exchange));
  const std::string pci = fs::path(device.pci_path).filename();
  const std::string network = device.is_infiniband
                                  ? fmt::format("InfiniBand LID {}", device.address.lid)
                                  : std::string(to_string(device.address.gid.type));
  return fmt::format(
      "{} port {}, {}, {} Mb/s, {}, {}, {}, MTU {}, agreed upon at {}; GPUDirect RDMA {}; {}chosen "
      "{}",
      device.hca, device.port,
      device.is_iwarp ? std::string("iWARP")
                      : fmt::format("{}, GID {} {} ({})", network, device.address.gid.index,
                                    to_string(device.address.gid.gid),
                                    device.gid_rule.index < 0 ? "chosen by itself"
                                                              : "by " + device.gid_rule.by),
      device.speed_mbps, pci.empty() ? "no PCI function" : "PCI " + pci, gpu_text(device),
      device.numa_node < 0 ? "NUMA node unknown" : fmt::format("NUMA node {}", device.numa_node),
      device.mtu_bytes, to_string(device.exchange.address), device.gpu_direct,
      device.settings.empty() ? "" : device.settings + "; ", device.choice);
}

tl::expected<config::Fabric, std::string> fabric_of(const Api& api, config::Fabric settings,
                                                    const NcclVariables& variables,
                                                    const LocalAddress& exchange) {
  if (variables.is_disabled)
    return tl::unexpected(std::string("NCCL_IB_DISABLE=1 forbids RDMA devices: unset it"));
  const DeviceList list(api);
  config::Fabric fabric = std::move(settings);
  fabric.nics.clear();
  fabric.path = variables.devices.is_set() ? "NCCL_IB_HCA=" + variables.devices_text
                                           : std::string("the choice of all active ports");
  std::vector<std::string> left_out;
  for (ibv_device* const one : list.all()) {
    const Opened opened = open(api, one);
    if (!opened) {
      left_out.push_back(opened.error());
      continue;
    }
    ibv_device_attr attr{};
    if (const int error = api.query_device((*opened)->context.get(), &attr); error != 0) {
      left_out.push_back(fmt::format("{} can't be queried ({})", one->name, std::strerror(error)));
      continue;
    }
    for (std::uint8_t port = 1; port <= attr.phys_port_cnt; ++port) {
      ibv_port_attr state{};
      if (const int error = api.query_port((*opened)->context.get(), port, &state); error != 0) {
        left_out.push_back(
            fmt::format("{} port {} can't be queried ({})", one->name, port, std::strerror(error)));
        continue;
      }
      if (state.state != IBV_PORT_ACTIVE || !variables.devices.fits(one->name, port)) {
        left_out.push_back(
            fmt::format("{} port {} ({})", one->name, port,
                        state.state == IBV_PORT_ACTIVE ? "not meant" : "not active"));
        continue;
      }
      if (one->transport_type == IBV_TRANSPORT_IWARP) {
        Device device;
        device.hca = one->name;
        device.opened = *opened;
        device.exchange.address = exchange.prefix.address;
        device.exchange.scope = exchange.prefix.address.is_link_local_v6() ? exchange.index : 0;
        if (const std::string fault = read_iwarp(device); !fault.empty()) {
          left_out.push_back(fault);
          continue;
        }
      }
      config::Nic nic;
      nic.name = attr.phys_port_cnt == 1 ? one->name : fmt::format("{}-{}", one->name, port);
      nic.driver = config::NicDriver::kVerbs;
      nic.device = one->name;
      nic.device_port = port;
      nic.address = exchange.prefix;
      nic.first_port = nic.last_port = 0;
      fabric.nics.push_back(std::move(nic));
    }
  }
  if (!fabric.nics.empty()) return fabric;
  return tl::unexpected(left_out.empty()
                            ? std::string("this host has no RDMA device (ibv_devices lists none)")
                            : fmt::format("no port of an RDMA device is active and fits {}: {}",
                                          fabric.path, fmt::join(left_out, ", ")));
}

}  // namespace ztcp::verbs
