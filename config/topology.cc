// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/topology.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdlib>
#include <ifaddrs.h>
#include <memory>
#include <net/if.h>
#include <netinet/in.h>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <hwloc.h>

#include "config/machine.h"

namespace ztcp::config {
namespace {

constexpr unsigned kClassEthernet = 0x0200;
constexpr unsigned kClassVga = 0x0300;
constexpr unsigned kClass3d = 0x0302;
constexpr unsigned kVendorNvidia = 0x10de;

// Kernel drivers whose NICs DPDK's drivers inside ztcp can take over.
constexpr std::array<std::string_view, 11> kKnownDrivers{"virtio-pci", "ena",  "gvnic",  "iavf",
                                                         "ice",        "i40e", "ixgbe",  "bnxt_en",
                                                         "hns3",       "gve",  "vmxnet3"};

struct TopologyDeleter {
  void operator()(hwloc_topology_t topology) const { hwloc_topology_destroy(topology); }
};
using HwlocTopology = std::unique_ptr<hwloc_topology, TopologyDeleter>;

HwlocTopology load_hwloc(const std::string& root) {
  // hwloc 2 takes another root by environment only. Only what sysfs says is asked for: its
  // plugins would start CUDA and X11.
  ::setenv("HWLOC_FSROOT", root.c_str(), 1);
  ::setenv("HWLOC_COMPONENTS", "linux,stop", 1);
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return nullptr;
  HwlocTopology topology(raw);
  hwloc_topology_set_io_types_filter(raw, HWLOC_TYPE_FILTER_KEEP_ALL);
  // A machine whose cpuset excludes a node still has that node's NICs.
  hwloc_topology_set_flags(raw, HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED);
  return hwloc_topology_load(raw) == 0 ? std::move(topology) : nullptr;
}

std::string pci_name(const hwloc_obj* device) {
  const auto& pci = device->attr->pcidev;
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", pci.domain, pci.bus, pci.dev, pci.func);
}

template <class Number>
Number read_number(const std::string& path, Number otherwise) {
  const auto text = read_line(path);
  Number number = otherwise;
  if (text) std::from_chars(text->data(), text->data() + text->size(), number);
  return number;
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

// Iface Destination Gateway Flags RefCnt Use Metric Mask, the numbers in memory order.
using RouteWords = std::array<std::string, 8>;

std::vector<RouteWords> ipv4_routes(const std::string& root) {
  std::vector<RouteWords> routes;
  std::istringstream text(read_text(root + "/proc/net/route").value_or(""));
  for (std::string line; std::getline(text, line);) {
    std::istringstream words(line);
    for (std::string& word : routes.emplace_back()) words >> word;
  }
  return routes;
}

std::optional<Ipv4Address> gateway_of(const std::vector<RouteWords>& routes,
                                      const std::string& interface) {
  for (const RouteWords& route : routes) {
    std::uint32_t value = 0;
    const auto end = route[2].data() + route[2].size();
    if (route[0] == interface && std::from_chars(route[2].data(), end, value, 16).ptr == end &&
        value != 0)
      return Ipv4Address{ntohl(value)};
  }
  return std::nullopt;
}

// Interfaces with a default route, and what lies below them: a bond's members carry its route.
std::set<std::string> default_route_interfaces(const std::string& root,
                                               const std::vector<RouteWords>& routes) {
  std::vector<std::string> found;
  for (const RouteWords& route : routes)
    if (route[1] == "00000000" && route[7] == "00000000") found.push_back(route[0]);
  std::istringstream ipv6(read_text(root + "/proc/net/ipv6_route").value_or(""));
  for (std::string line; std::getline(ipv6, line);) {
    std::istringstream words(line);
    std::array<std::string, 10> word;  // Destination, its length, ..., interface last.
    for (std::string& w : word) words >> w;
    if (word[0] == std::string(32, '0') && word[1] == "00" && word[9] != "lo")
      found.push_back(word[9]);
  }
  std::set<std::string> all;
  while (!found.empty()) {
    const std::string name = found.back();
    found.pop_back();
    if (!all.insert(name).second) continue;
    for (const std::string& entry : list_folder(root + "/sys/class/net/" + name))
      if (entry.starts_with("lower_")) found.push_back(entry.substr(6));
  }
  return all;
}

Gpu read_gpu(const std::string& root, const hwloc_obj* device) {
  Gpu gpu;
  gpu.pci = pci_name(device);
  gpu.numa_node = read_number(root + "/sys/bus/pci/devices/" + gpu.pci + "/numa_node", -1);
  const auto information =
      read_text(root + "/proc/driver/nvidia/gpus/" + gpu.pci + "/information").value_or("");
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

std::string unfit_reason(const std::string& root, const HostNic& nic,
                         const std::set<std::string>& default_routes) {
  if (default_routes.contains(nic.interface) && !nic.interface.empty())
    return "carries the default route";
  if (const auto master = link_name(root + "/sys/class/net/" + nic.interface + "/master");
      master && !nic.interface.empty())
    return fmt::format("belongs to {}", *master);
  if (nic.driver == "vfio-pci" || nic.driver.empty()) return {};
  if (std::find(kKnownDrivers.begin(), kKnownDrivers.end(), nic.driver) == kKnownDrivers.end())
    return fmt::format("ztcp has no driver for {} NICs", nic.driver);
  return {};
}

HostNic read_nic(const std::string& root, const hwloc_obj* device,
                 const InterfaceAddresses& addresses, const std::vector<RouteWords>& routes,
                 const std::set<std::string>& default_routes) {
  HostNic nic;
  nic.pci = pci_name(device);
  nic.id =
      fmt::format("{:04x}:{:04x}", device->attr->pcidev.vendor_id, device->attr->pcidev.device_id);
  const std::string folder = root + "/sys/bus/pci/devices/" + nic.pci;
  nic.driver = link_name(folder + "/driver").value_or("");
  nic.has_iommu_group = link_name(folder + "/iommu_group").has_value();
  nic.numa_node = read_number(folder + "/numa_node", -1);
  if (const auto interfaces = interfaces_of(folder); !interfaces.empty()) {
    nic.interface = interfaces.front();
    const std::string net = root + "/sys/class/net/" + nic.interface;
    if (const auto text = read_line(net + "/address"))
      nic.mac = parse_mac(*text).value_or(MacAddress{});
    nic.mtu_bytes = read_number(net + "/mtu", 0U);
    // -1 where the driver does not know.
    nic.speed_mbps = static_cast<std::uint32_t>(std::max(0, read_number(net + "/speed", 0)));
    if (const auto it = addresses.find(nic.interface); it != addresses.end())
      nic.address = it->second;
    nic.gateway = gateway_of(routes, nic.interface);
  }
  nic.unfit = unfit_reason(root, nic, default_routes);
  return nic;
}

}  // namespace

InterfaceAddresses interface_addresses() {
  InterfaceAddresses addresses;
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return addresses;
  for (const ifaddrs* entry = first; entry != nullptr; entry = entry->ifa_next) {
    if (entry->ifa_addr == nullptr || entry->ifa_addr->sa_family != AF_INET) continue;
    const auto value = [](const sockaddr* address) {
      return ntohl(reinterpret_cast<const sockaddr_in*>(address)->sin_addr.s_addr);
    };
    Ipv4Prefix prefix;
    prefix.address.value = value(entry->ifa_addr);
    if (entry->ifa_netmask != nullptr)
      prefix.length = static_cast<std::uint8_t>(__builtin_popcount(value(entry->ifa_netmask)));
    addresses.emplace(entry->ifa_name, prefix);  // The first is the primary one.
  }
  ::freeifaddrs(first);
  return addresses;
}

tl::expected<Topology, Problem> detect(const std::string& root,
                                       const InterfaceAddresses& addresses) {
  const HwlocTopology hwloc = load_hwloc(root);
  if (!hwloc)
    return tl::unexpected(
        Problem{root + "/sys", "hwloc can't read this machine's topology", "hwloc-ls shows why"});
  // "/" + "/sys" is a path, but not one to print.
  const std::string base = root == "/" ? "" : root;
  Topology topology;
  std::vector<hwloc_obj_t> gpus;
  std::vector<hwloc_obj_t> nics;
  const auto routes = ipv4_routes(base);
  const auto default_routes = default_route_interfaces(base, routes);
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
  for (const auto* gpu : gpus) topology.gpus.push_back(read_gpu(base, gpu));
  for (const auto* nic : nics)
    topology.nics.push_back(read_nic(base, nic, addresses, routes, default_routes));
  for (hwloc_obj_t gpu : gpus) {
    auto& row = topology.distances.emplace_back();
    for (hwloc_obj_t nic : nics) row.push_back(distance_between(gpu, nic));
  }
  for (hwloc_obj_t node = nullptr;
       (node = hwloc_get_next_obj_by_type(hwloc.get(), HWLOC_OBJ_NUMANODE, node)) != nullptr;)
    topology.numa_nodes.push_back(static_cast<std::int32_t>(node->os_index));
  return topology;
}

}  // namespace ztcp::config
