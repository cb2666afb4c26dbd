// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/machine/rdma.h"

#include <algorithm>
#include <charconv>
#include <span>
#include <tuple>
#include <utility>

#include <fmt/format.h>

#include "config/machine/readings.h"
#include "config/machine/text.h"
#include "core/nic_families.h"
#include "core/pci_path.h"

namespace ztcp::config {
namespace {

// rdma_node_type in Linux's include/rdma/ib_verbs.h: "1: CA", "4: RNIC".
RdmaKind kind_of(Machine& machine, const std::string& folder) {
  switch (read_number(machine, folder + "/node_type").value_or(1)) {
    case 1:
      return RdmaKind::kAdapter;
    case 4:
      return RdmaKind::kIwarp;
    default:
      return RdmaKind::kOther;
  }
}

std::vector<GidEntry> gids_of(Machine& machine, const std::string& folder, bool is_infiniband) {
  std::vector<GidEntry> out;
  for (const std::string& name : machine.list(folder + "/gids")) {
    const auto gid = parse_gid(read_line(machine, folder + "/gids/" + name).value_or(""));
    const auto index = parse_number(name);
    if (!gid || *gid == Gid{} || !index) continue;
    const auto type = read_line(machine, folder + "/gid_attrs/types/" + name);
    out.push_back(
        {static_cast<int>(*index), *gid, parse_gid_type(type.value_or(""), is_infiniband)});
  }
  std::sort(out.begin(), out.end(),
            [](const GidEntry& a, const GidEntry& b) { return a.index < b.index; });
  return out;
}

// The PCI function; the device may sit on intermediate ones ("mlx5_core.rdma.0").
std::string pci_of(Machine& machine, const std::string& folder) {
  const std::string target = machine.link_target(folder + "/device").value_or("");
  const auto parts = split(target, '/');
  const auto found = std::find_if(parts.rbegin(), parts.rend(), is_pci_address);
  return found == parts.rend() ? std::string() : std::string(*found);
}

// The interface with that MAC address; interfaces on top of it that share the address are skipped.
std::string interface_with(Machine& machine, std::span<const std::uint8_t, 6> mac) {
  const std::string text = fmt::format("{:02x}", fmt::join(mac, ":"));
  for (std::string& name : machine.list("/sys/class/net")) {
    const std::string folder = "/sys/class/net/" + name;
    if (read_line(machine, folder + "/address") == text &&
        read_number(machine, folder + "/iflink") == read_number(machine, folder + "/ifindex"))
      return std::move(name);
  }
  return {};
}

// The interface of its GIDs; for iWARP, the one with the MAC address at the start of the only GID;
// for InfiniBand, where GIDs belong to no interface, the PCI function's.
std::string interface_of(Machine& machine, const std::string& folder, const RdmaPort& port) {
  if (port.kind == RdmaKind::kIwarp && !port.gids.empty())
    if (std::string name = interface_with(machine, std::span(port.gids.front().gid).first<6>());
        !name.empty())
      return name;
  for (const GidEntry& gid : port.gids)
    if (auto name = read_line(
            machine, fmt::format("{}/ports/{}/gid_attrs/ndevs/{}", folder, port.port, gid.index));
        name && !name->empty())
      return std::move(*name);
  if (auto parent = read_line(machine, folder + "/parent"); parent && !parent->empty())
    return std::move(*parent);
  if (port.pci.empty()) return {};
  for (std::string& name : interfaces_of(machine, port.pci))
    if (read_number(machine, "/sys/class/net/" + name + "/dev_port").value_or(0) == port.port - 1)
      return std::move(name);
  return {};
}

}  // namespace

std::uint32_t rate_mbps(const std::string& rate) {
  const auto words = words_of(rate);
  double gbps = 0;
  if (words.size() < 2 || words[1] != "Gb/sec" ||
      std::from_chars(words[0].data(), words[0].data() + words[0].size(), gbps).ec != std::errc{} ||
      !(gbps >= 0 && gbps <= 10'000))  // Also false for NaN.
    return 0;
  return static_cast<std::uint32_t>(gbps * 1000);
}

RdmaPort read_rdma_port(Machine& machine, const std::string& device, std::uint16_t number) {
  const std::string folder = fmt::format("{}/{}", kRdmaDevices, device);
  const std::string of_port = fmt::format("{}/ports/{}", folder, number);
  RdmaPort port;
  port.device = device;
  port.port = number;
  port.kind = kind_of(machine, folder);
  port.is_infiniband = read_line(machine, of_port + "/link_layer") == "InfiniBand";
  // "4: ACTIVE"
  const std::string state = read_line(machine, of_port + "/state").value_or("");
  port.state = trimmed(std::string_view(state).substr(std::min(state.find(':') + 1, state.size())));
  port.speed_mbps = rate_mbps(read_line(machine, of_port + "/rate").value_or(""));
  port.gids = gids_of(machine, of_port, port.is_infiniband);
  port.pci = pci_of(machine, folder);
  port.interface = interface_of(machine, folder, port);
  if (port.kind == RdmaKind::kIwarp) port.gids.clear();  // They contain no IP address.
  if (!port.pci.empty())
    port.numa_node = static_cast<std::int32_t>(
        read_number(machine, pci_folder(port.pci) + "/numa_node").value_or(-1));
  return port;
}

std::vector<RdmaPort> rdma_ports(Machine& machine) {
  std::vector<RdmaPort> ports;
  for (const std::string& device : machine.list(kRdmaDevices))
    for (const std::string& name : machine.list(fmt::format("{}/{}/ports", kRdmaDevices, device)))
      if (const auto number = parse_number(name); number && *number >= 1 && *number <= 255)
        ports.push_back(read_rdma_port(machine, device, static_cast<std::uint16_t>(*number)));
  // "mlx5_10" comes after "mlx5_9".
  const auto rank = [](const RdmaPort& one) {
    return std::tuple(one.pci.empty(), one.pci, one.device.size(), one.device, one.port);
  };
  std::sort(ports.begin(), ports.end(),
            [&](const RdmaPort& a, const RdmaPort& b) { return rank(a) < rank(b); });
  return ports;
}

std::string uverbs_node(Machine& machine, const std::string& device) {
  const std::string folder = "/sys/class/infiniband_verbs";
  for (const std::string& name : machine.list(folder))
    if (read_line(machine, folder + "/" + name + "/ibdev") == device)
      return "/dev/infiniband/" + name;
  return {};
}

// As iboe_get_mtu() of Linux: GRH 40, UDP 8, BTH 12, extended headers 4 and 28, ICRC 4.
std::uint32_t roce_payload_bytes(std::uint32_t mtu_bytes) {
  constexpr std::uint32_t kHeaders = 96;
  std::uint32_t payload = kLargestRocePayload;
  while (payload > 256 && payload + kHeaders > mtu_bytes) payload /= 2;
  return payload;
}

std::string_view rdma_module_of(std::string_view nic_driver) {
  const NicFamily* const family = family_of_kernel_driver(nic_driver);
  return family == nullptr ? std::string_view() : family->rdma_module;
}

}  // namespace ztcp::config
