// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/topology/topology.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <memory>
#include <set>
#include <unistd.h>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <hwloc.h>

#include "config/machine/readings.h"
#include "config/network/reserved.h"
#include "config/settings.h"
#include "core/interface_identifier.h"
#include "core/nic_families.h"

namespace ztcp::config {
namespace {

constexpr unsigned kClassEthernet = 0x0200;
constexpr unsigned kClassVga = 0x0300;
constexpr unsigned kClass3d = 0x0302;
constexpr unsigned kVendorNvidia = 0x10de;

struct TopologyDeleter {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using HwlocTopology = std::unique_ptr<hwloc_topology, TopologyDeleter>;

std::vector<std::string> variables_of_hwloc() {
  std::vector<std::string> names;
  for (const char* const* variable = environ; *variable != nullptr; ++variable)
    if (const std::string_view text = *variable; text.starts_with("HWLOC_"))
      names.emplace_back(text.substr(0, text.find('=')));
  return names;
}

HwlocTopology load_hwloc(const std::string& root) {
  // A cluster may give jobs another topology (HWLOC_XMLFILE, HWLOC_SYNTHETIC); set-up needs the
  // machine's own.
  for (const std::string& name : variables_of_hwloc()) ::unsetenv(name.c_str());
  // hwloc 2 takes another root through the environment only. Restricted to sysfs: its plugins would
  // start CUDA and X11.
  ::setenv("HWLOC_FSROOT", root.c_str(), 1);
  ::setenv("HWLOC_COMPONENTS", "linux,stop", 1);
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return nullptr;
  HwlocTopology topology(raw);
  hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_ALL);
  // A cpuset that excludes a node does not exclude its NICs.
  hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  return hwloc_topology_load(raw) == 0 ? std::move(topology) : nullptr;
}

std::string pci_name(const hwloc_obj* device) {
  const auto& pci = device->attr->pcidev;
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", pci.domain, pci.bus, pci.dev, pci.func);
}

// The number in a sysfs file; negative where the driver does not know.
std::int32_t number_in(Machine& machine, const std::string& path, std::int32_t otherwise) {
  return static_cast<std::int32_t>(read_number(machine, path).value_or(otherwise));
}

unsigned depth_of(const hwloc_obj* object) {
  unsigned depth = 0;
  for (; object->parent != nullptr; object = object->parent) ++depth;
  return depth;
}

Distance distance_between(hwloc_obj_t a, hwloc_obj_t b) {
  unsigned depth_a = depth_of(a);
  unsigned depth_b = depth_of(b);
  while (a != b) {
    const bool climb_a = depth_a >= depth_b;
    const bool climb_b = depth_b >= depth_a;
    if (climb_a) a = a->parent, --depth_a;
    if (climb_b) b = b->parent, --depth_b;
  }
  Distance distance{Nearness::kNumaNode, depth_a};
  if (a->type == HWLOC_OBJ_BRIDGE)
    distance.nearness = a->attr->bridge.upstream_type == HWLOC_OBJ_BRIDGE_HOST
                            ? Nearness::kHostBridge
                            : Nearness::kSwitch;
  else if (hwloc_bitmap_weight(a->nodeset) != 1)
    distance.nearness = Nearness::kMachine;
  return distance;
}

Gpu read_gpu(Machine& machine, const hwloc_obj* device) {
  Gpu gpu;
  gpu.pci = pci_name(device);
  gpu.numa_node = number_in(machine, pci_folder(gpu.pci) + "/numa_node", -1);
  const std::string information =
      text_of(machine, "/proc/driver/nvidia/gpus/" + gpu.pci + "/information");
  const auto field = [&](std::string_view name) -> std::string {
    const auto at = information.find(name);
    if (at == std::string::npos) return {};
    const auto first = information.find_first_not_of(" \t", at + name.size());
    if (first == std::string::npos) return {};
    return information.substr(first, information.find('\n', first) - first);
  };
  gpu.model = field("Model:");
  gpu.uuid = field("GPU UUID:");
  return gpu;
}

// The facts that decide whether and how a NIC can be taken.
struct View {
  Machine& machine;
  const Network& network;
  const Selection& selection;
  Reserved reserved;
};

bool names(const std::set<std::string, std::less<>>& list, const HostNic& nic) {
  return list.contains(nic.pci) || (!nic.interface.empty() && list.contains(nic.interface));
}

// An upper interface other than VLANs; the config can hold a VLAN's address and tag.
std::string other_upper(const View& view, const std::string& interface) {
  for (const std::string& entry : view.machine.list("/sys/class/net/" + interface)) {
    if (!entry.starts_with("upper_")) continue;
    const Interface* upper = view.network.find(entry.substr(6));
    if (upper == nullptr || upper->kind != "vlan") return entry.substr(6);
  }
  return {};
}

std::string unfit_reason(const View& view, const HostNic& nic) {
  if (names(view.selection.keep, nic)) return "was named by --keep";
  const std::string pci = pci_folder(nic.pci);
  if (!nic.interface.empty()) {
    // Its routes and addresses are invisible from here, so their users are unknown.
    if (view.network.find(nic.interface) == nullptr) return "belongs to another network namespace";
    if (const auto it = view.reserved.find(nic.interface); it != view.reserved.end()) {
      if (!it->second.yields) return it->second.why;
      if (!names(view.selection.take, nic))
        return fmt::format("{}; --take {} takes it all the same", it->second.why, nic.interface);
    }
    if (const auto master = link_name(view.machine, "/sys/class/net/" + nic.interface + "/master"))
      return fmt::format("belongs to {}", *master);
    if (const std::string upper = other_upper(view, nic.interface); !upper.empty())
      return fmt::format("carries {}", upper);
  }
  if (const int functions = number_in(view.machine, pci + "/sriov_numvfs", 0); functions > 0)
    return fmt::format("has {} virtual functions, which would lose their link", functions);
  if (nic.driver == "vfio-pci" || nic.driver.empty()) return {};
  const NicFamily* const family = family_of_kernel_driver(nic.driver);
  if (family != nullptr && family->access == NicAccess::kBifurcated && !family->dpdk_driver.empty())
    return fmt::format("has the driver {}, which keeps its NICs; --transport mlx5 shares them",
                       nic.driver);
  if (family != nullptr && family->access == NicAccess::kBifurcated)
    return fmt::format("has the driver {}, which keeps its NICs; ztcp's TCP can't use it yet",
                       nic.driver);
  if (family == nullptr || family->access != NicAccess::kTaken)
    return fmt::format("has the driver {}; ztcp has none for such NICs", nic.driver);
  return {};
}

// Takes the NIC's own first address; else that of its VLAN with the lowest tag; IPv6 where there is
// no IPv4 one, and a link-local one only if there is no other. The others are listed in left_out.
void choose_address(const View& view, HostNic& nic) {
  const Interface* own = view.network.find(nic.interface);
  if (own == nullptr) return;
  std::vector<const Interface*> candidates{own};
  for (const Interface& interface : view.network.interfaces)
    if (interface.kind == "vlan" && interface.lower == own->index) candidates.push_back(&interface);
  std::sort(candidates.begin() + 1, candidates.end(),
            [](const Interface* a, const Interface* b) { return a->vlan_id < b->vlan_id; });
  std::vector<std::pair<const Interface*, const InterfaceAddress*>> addresses;
  for (const Interface* interface : candidates)
    for (const InterfaceAddress& address : interface->ipv4)
      addresses.emplace_back(interface, &address);
  for (const Interface* interface : candidates)
    for (const InterfaceAddress& address : interface->ipv6)
      if (address.is_usable && !address.secondary && !address.prefix.address.is_link_local())
        addresses.emplace_back(interface, &address);
  std::stable_partition(addresses.begin(), addresses.end(), [](const auto& one) {
    return !one.second->prefix.address.is_link_local();
  });
  for (const auto& [interface, address] : addresses) {
    if (nic.address) {
      nic.left_out.push_back(fmt::format("{} on {}", to_string(address->prefix), interface->name));
      continue;
    }
    nic.address = address->prefix;
    nic.is_address_advertised =
        address->is_advertised && address->prefix.length == 64 &&
        address->prefix.address == address_of_mac(address->prefix.address, nic.mac);
    nic.address_interface = interface->name;
    nic.valid_s = address->valid_s;
    nic.vlan_id = interface->vlan_id;
    if (interface->kind == "vlan" && interface->mtu_bytes > 0) nic.mtu_bytes = interface->mtu_bytes;
  }
}

// Takes the widest route with a next hop: a default route, which clouds keep in tables by NIC.
void choose_gateway(const View& view, HostNic& nic) {
  const Interface* interface = view.network.find(nic.address_interface);
  const Route* best = nullptr;
  for (const Route& route : view.network.routes)
    if (interface != nullptr && route.interface == interface->index && route.gateway &&
        nic.address && route.gateway->is_v4() == nic.address->address.is_v4() &&
        (best == nullptr || route.destination.length < best->destination.length))
      best = &route;
  if (best == nullptr) return;
  const bool comes_and_goes = best->is_advertised && best->destination.length == 0;
  nic.gateway = comes_and_goes ? kAutoGateway : best->gateway;
}

HostNic read_nic(const View& view, const hwloc_obj* device, const std::string& interface) {
  HostNic nic;
  nic.pci = pci_name(device);
  nic.id =
      fmt::format("{:04x}:{:04x}", device->attr->pcidev.vendor_id, device->attr->pcidev.device_id);
  const std::string folder = pci_folder(nic.pci);
  nic.driver = link_name(view.machine, folder + "/driver").value_or("");
  nic.iommu_group = link_name(view.machine, folder + "/iommu_group").value_or("");
  // Without an IOMMU vfio makes groups of its own, with a name.
  nic.protects = !nic.iommu_group.empty() &&
                 read_line(view.machine, "/sys/kernel/iommu_groups/" + nic.iommu_group + "/name") !=
                     "vfio-noiommu";
  nic.numa_node = number_in(view.machine, folder + "/numa_node", -1);
  if (!interface.empty()) {
    nic.interface = interface;
    const std::string net = "/sys/class/net/" + nic.interface;
    if (const auto text = read_line(view.machine, net + "/address"))
      nic.mac = parse_mac(*text).value_or(MacAddress{});
    const auto known = [&](const char* file) {
      return static_cast<std::uint32_t>(std::max(0, number_in(view.machine, net + file, 0)));
    };
    nic.mtu_bytes = known("/mtu");
    nic.speed_mbps = known("/speed");
    choose_address(view, nic);
    choose_gateway(view, nic);
  }
  nic.unfit = unfit_reason(view, nic);
  return nic;
}

// One entry per interface: some drivers (mlx4_core, mana) have several ports on one PCI function.
// The function is taken as a whole, under the name of its first interface.
void read_nics(const View& view, const hwloc_obj* device, std::vector<HostNic>& nics) {
  std::vector<std::string> interfaces = interfaces_of(view.machine, pci_name(device));
  if (interfaces.empty()) interfaces.emplace_back();
  const std::size_t first = nics.size();
  for (const std::string& interface : interfaces) nics.push_back(read_nic(view, device, interface));
  const auto begin = nics.begin() + static_cast<std::ptrdiff_t>(first);
  const auto unfit =
      std::find_if(begin, nics.end(), [](const HostNic& nic) { return !nic.unfit.empty(); });
  const std::string why = unfit == nics.end()
                              ? fmt::format("{}, which is taken with it", interfaces.front())
                              : fmt::format("{}, which {}", unfit->interface, unfit->unfit);
  for (auto nic = begin; nic != nics.end(); ++nic)
    if (nic->unfit.empty() && (nic != begin || unfit != nics.end()))
      nic->unfit = "shares its PCI function with " + why;
}

// Parses "0x15b3".
unsigned id_in(Machine& machine, const std::string& path) {
  const std::string text = read_line(machine, path).value_or("");
  unsigned id = 0;
  if (text.starts_with("0x")) std::from_chars(text.data() + 2, text.data() + text.size(), id, 16);
  return id;
}

HostNic read_rdma(Machine& machine, RdmaPort port) {
  HostNic nic;
  nic.pci = port.pci;
  nic.interface = port.interface;
  nic.numa_node = port.numa_node;
  nic.speed_mbps = port.speed_mbps;
  if (const auto gid = choose_gid(port.gids, port.is_infiniband)) nic.gid = describe(*gid);
  if (!nic.pci.empty()) {
    const std::string folder = pci_folder(nic.pci);
    nic.driver = link_name(machine, folder + "/driver").value_or("");
    nic.id = fmt::format("{:04x}:{:04x}", id_in(machine, folder + "/vendor"),
                         id_in(machine, folder + "/device"));
  }
  if (!nic.interface.empty()) {
    const std::string net = "/sys/class/net/" + nic.interface;
    nic.mac = parse_mac(read_line(machine, net + "/address").value_or("")).value_or(MacAddress{});
    nic.mtu_bytes = static_cast<std::uint32_t>(std::max(0, number_in(machine, net + "/mtu", 0)));
  }
  nic.rdma = std::move(port);
  return nic;
}

}  // namespace

Result<Topology, Problem> detect(Machine& machine, const std::string& fsroot,
                                 const Network& network, const Selection& selection) {
  const HwlocTopology hwloc = load_hwloc(fsroot);
  if (!hwloc)
    return tl::unexpected(
        Problem{"/sys", "hwloc can't read this machine's topology", "hwloc-ls shows why"});
  Topology topology;
  std::vector<hwloc_obj_t> gpus;
  std::vector<hwloc_obj_t> nics;
  const View view{machine, network, selection,
                  reserved_interfaces(machine, network, selection.ssh_connection)};
  for (hwloc_obj_t device = nullptr;
       (device = hwloc_get_next_pcidev(hwloc.get(), device)) != nullptr;) {
    const unsigned pci_class = device->attr->pcidev.class_id;
    if ((pci_class == kClassVga || pci_class == kClass3d) &&
        device->attr->pcidev.vendor_id == kVendorNvidia)
      gpus.push_back(device);
    else if (pci_class == kClassEthernet)
      nics.push_back(device);
  }
  const auto by_address = [](const hwloc_obj* a, const hwloc_obj* b) {
    return pci_name(a) < pci_name(b);
  };
  std::sort(gpus.begin(), gpus.end(), by_address);
  std::sort(nics.begin(), nics.end(), by_address);
  for (const auto* gpu : gpus) topology.gpus.push_back(read_gpu(machine, gpu));
  std::vector<hwloc_obj_t> places;  // In the order of topology.nics.
  for (hwloc_obj_t nic : nics) {
    read_nics(view, nic, topology.nics);
    places.resize(topology.nics.size(), nic);
  }
  for (hwloc_obj_t gpu : gpus) {
    auto& row = topology.distances.emplace_back();
    for (hwloc_obj_t nic : places) row.push_back(distance_between(gpu, nic));
  }
  for (RdmaPort& port : rdma_ports(machine))
    topology.rdma.push_back(read_rdma(machine, std::move(port)));
  for (hwloc_obj_t gpu : gpus) {
    auto& row = topology.rdma_distances.emplace_back();
    for (const HostNic& port : topology.rdma) {
      hwloc_obj_t own = port.pci.empty()
                            ? nullptr
                            : hwloc_get_pcidev_by_busidstring(hwloc.get(), port.pci.c_str());
      row.push_back(own == nullptr ? Distance{} : distance_between(gpu, own));
    }
  }
  for (hwloc_obj_t node = nullptr;
       (node = hwloc_get_next_obj_by_type(hwloc.get(), HWLOC_OBJ_NUMANODE, node)) != nullptr;)
    topology.numa_nodes.push_back(static_cast<std::int32_t>(node->os_index));
  return topology;
}

}  // namespace ztcp::config
