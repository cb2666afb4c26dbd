// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/device_list.h"

#include <algorithm>
#include <chrono>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "config/machine/rdma.h"
#include "config/nic_interface.h"
#include "core/pci_path.h"
#include "transport/sockets/kernel/device_list.h"
#include "transport/verbs/device_settings.h"
#include "transport/verbs/gpu_direct.h"
#include "transport/verbs/link_speed.h"
#include "transport/verbs/open_devices.h"

namespace ztcp::verbs {
namespace {

namespace fs = std::filesystem;

fs::path port_folder(const Device& device, const fs::path& sys_root) {
  return sys_root / "class/infiniband" / device.hca / "ports" / std::to_string(device.port);
}

// The speed according to libibverbs where it has the call, which counts all links of a bond; else
// according to the kernel, since a library older than the kernel does not know the newest speeds.
// 0: unknown.
std::uint32_t port_mbps(const Device& device, const ibv_port_attr& attr,
                        const NcclVariables& variables, const fs::path& sys_root) {
  const Api& api = *device.opened->api;
  std::uint64_t told = 0;  // In 100 Mb/s.
  if (variables.asks_port_speed && api.query_port_speed != nullptr &&
      api.query_port_speed(device.opened->context.get(), device.port, &told) == 0 && told != 0 &&
      told < 100'000'000)
    return static_cast<std::uint32_t>(told * 100);
  std::ifstream file(port_folder(device, sys_root) / "rate");
  std::string rate;
  std::getline(file, rate);
  const std::uint32_t from_kernel = config::rate_mbps(rate);
  return from_kernel != 0 ? from_kernel : link_mbps(attr.active_speed, attr.active_width);
}

// The rule by which the GID is chosen. NCCL's variable does not apply to InfiniBand, where ports
// have few GIDs.
void take_gid_rule(Device& device, const config::Nic& nic, const NcclVariables& variables) {
  GidRule& rule = device.gid_rule;
  rule.wish = variables.gid_wish;
  rule.wish.near = nic.address;
  if (!device.is_infiniband) rule.wished_by = variables.gid_wished_by;
  if (nic.gid_index >= 0) {
    rule.index = nic.gid_index;
    rule.by = "gid_index of the config";
  } else if (variables.gid_index >= 0 && !device.is_infiniband) {
    rule.index = variables.gid_index;
    rule.by = "NCCL_IB_GID_INDEX";
  }
}

// Reads the port's attributes. Returns why it can't be used; empty: it can.
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
  if (std::string fault = fault_of_kind(*context->device, device.port, attr); !fault.empty())
    return fault;
  device.is_infiniband = attr.link_layer == IBV_LINK_LAYER_INFINIBAND;
  take_threshold(device, nic, variables);
  device.needs_grh = (attr.flags & IBV_QPF_GRH_REQUIRED) != 0;
  device.mtu_bytes = 128U << static_cast<unsigned>(attr.active_mtu);
  const std::uint32_t told =
      nic.speed_mbps != 0 ? nic.speed_mbps : port_mbps(device, attr, variables, sys_root);
  if (told != 0) device.speed_mbps = told;
  if (attr.state != IBV_PORT_ACTIVE)
    return fmt::format("port {} of {} is {}", device.port, device.hca, state_text(attr.state));
  if (device.is_iwarp) return read_iwarp(device);

  device.gid_rule.types = (port_folder(device, sys_root) / "gid_attrs/types").string();
  take_gid_rule(device, nic, variables);
  auto address = read_address(*device.opened, device.port, device.gid_rule);
  if (!address) return std::move(address.error());
  device.address = *address;
  return {};
}

// The listener's interface for peers; an error says why there is none.
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

// A rail of TCP over an interface. If it can't be used, its fault says why.
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
    if (known == opened.end()) known = opened.emplace(device.hca, open_device(api, found)).first;
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
                                    choice_text(device.gid_rule, device.address.gid)),
      device.speed_mbps, pci.empty() ? "no PCI function" : "PCI " + pci, gpu_text(device),
      device.numa_node < 0 ? "NUMA node unknown" : fmt::format("NUMA node {}", device.numa_node),
      device.mtu_bytes, to_string(device.exchange.address), device.gpu_direct,
      device.settings.empty() ? "" : device.settings + "; ", device.choice);
}

}  // namespace ztcp::verbs
