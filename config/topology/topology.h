// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The GPUs and NICs of a machine, their distances, and the pairing of NICs with GPUs. For tools:
// the plugin trusts the config. topology.cc is the only user of hwloc, which reads PCI and NUMA
// below any root directory (HWLOC_FSROOT), so that tests can provide machines as trees.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "config/machine/machine.h"
#include "config/machine/rdma.h"
#include "config/network/network.h"
#include "config/problem.h"
#include "core/address.h"
#include "core/result.h"

namespace ztcp::config {

// How near a GPU and a NIC are, by their nearest common ancestor.
enum class Nearness : std::uint8_t { kSwitch, kHostBridge, kNumaNode, kMachine };
const char* describe(Nearness nearness);  // "same PCI switch"

struct Gpu {
  std::string pci;    // "0000:17:00.0"
  std::string model;  // "NVIDIA H800"; empty without its driver.
  std::string uuid;   // Empty without its driver.
  std::int32_t numa_node = -1;
};

struct HostNic {
  std::string pci;
  std::string id;         // "14e4:1750"
  std::string driver;     // "bnxt_en"; empty: none bound.
  std::string interface;  // "eth1"; empty without a kernel driver.
  MacAddress mac;
  std::uint32_t mtu_bytes = 0;   // 0: unknown.
  std::uint32_t speed_mbps = 0;  // 0: unknown.
  std::int32_t numa_node = -1;
  std::optional<IpPrefix> address;
  // A router gave the address, and its second half is the MAC address's, so that ztcp would take
  // the same one (`address = "auto"`).
  bool is_address_advertised = false;
  std::string address_interface;  // The interface with the address: "eth1", or "eth1.100" above it.
  std::uint32_t valid_s = InterfaceAddress::kForever;  // Smaller: leased.
  std::uint16_t vlan_id = 0;
  std::optional<IpAddress> gateway;   // From any route through it.
  std::vector<std::string> left_out;  // Other addresses: "10.0.0.6/24 on eth1".
  std::string iommu_group;            // "12"; empty: none.
  bool protects = false;              // True for an IOMMU's group, false for vfio's substitute.
  std::optional<RdmaPort> rdma;       // The same NIC as a port of an RDMA device.
  std::string gid;                    // GID of connections over it: "10.0.0.5 (RoCE v2)".
  std::string unfit;  // Why ztcp cannot use it: "carries the default route"; empty: it can.
};

// One step is one level of the tree of PCI switches, host bridges and NUMA nodes.
struct Distance {
  Nearness nearness = Nearness::kMachine;
  unsigned depth = 0;  // Depth of the nearest common ancestor: deeper is nearer.
};

struct Topology {
  std::vector<Gpu> gpus;                         // By PCI address.
  std::vector<HostNic> nics;                     // By PCI address, then interface.
  std::vector<std::vector<Distance>> distances;  // [gpu][nic]
  std::vector<HostNic> rdma;                     // Ports of RDMA devices, as rdma_ports() has them.
  std::vector<std::vector<Distance>> rdma_distances;  // [gpu][port]
  std::vector<std::int32_t> numa_nodes;
};

// The operator's selection: NICs to leave alone, and NICs to take although they carry a default
// route that is not the best. Interfaces or PCI addresses.
struct Selection {
  std::set<std::string, std::less<>> keep;
  std::set<std::string, std::less<>> take;
  std::string ssh_connection;  // The variable of that name.
};

// hwloc reads by itself, below `fsroot`: "/" for this machine. Sets HWLOC_FSROOT for this process:
// tools only.
Result<Topology, Problem> detect(Machine& machine, const std::string& fsroot,
                                 const Network& network, const Selection& selection);

struct Pair {
  std::optional<std::size_t> gpu;  // Absent: any process may take the NIC.
  std::size_t nic = 0;
  std::string reason;  // "same PCI switch", "flat PCI tree: same NUMA node 0, then device order"
};

// Assigns one NIC to each GPU, in GPU order: the nearest pairs first; equally near ones by NUMA
// node, then by PCI address, so that equal hosts pair equally. A Problem when there are no GPUs or
// too few NICs.
Result<std::vector<Pair>, Problem> assign(const Topology& topology);

// The first `count` fit NICs in the order of PCI addresses, all of them when it is 0; no GPUs.
Result<std::vector<Pair>, Problem> take_nics(const Topology& topology, std::size_t count);

// For NICs that processes share: for each GPU, in GPU order, the nearest fit NIC, among equally
// near ones the one with the fewest GPUs so far. Fit NICs without a GPU follow.
std::vector<Pair> share_nics(const Topology& topology);

}  // namespace ztcp::config
