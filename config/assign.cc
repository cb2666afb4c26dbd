// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Which NIC each GPU gets.
#include <algorithm>

#include <fmt/format.h>

#include "config/topology.h"

namespace ztcp::config {
namespace {

struct Edge {
  std::size_t gpu;
  std::size_t nic;
  Distance distance;
  bool other_numa_node;
};

std::string reason_for(const Topology& topology, const Edge& edge) {
  const Gpu& gpu = topology.gpus[edge.gpu];
  const std::string near = describe(edge.distance.nearness);
  // How many NICs are just as near: if there are several, the tie breakers decided.
  const auto& row = topology.distances[edge.gpu];
  std::size_t equal = 0;
  for (std::size_t nic = 0; nic < row.size(); ++nic)
    if (topology.nics[nic].unfit.empty() && row[nic].depth == edge.distance.depth) ++equal;
  if (equal < 2) return near;
  if (gpu.numa_node < 0 || edge.other_numa_node) return near + ", then device order";
  return near + fmt::format(", then NUMA node {} and device order", gpu.numa_node);
}

}  // namespace

const char* describe(Nearness nearness) {
  switch (nearness) {
    case Nearness::kSwitch:
      return "same PCI switch";
    case Nearness::kHostBridge:
      return "same PCI host bridge";
    case Nearness::kNumaNode:
      return "same NUMA node";
    case Nearness::kMachine:
      break;
  }
  return "across NUMA nodes";
}

tl::expected<std::vector<Pair>, Problem> assign(const Topology& topology) {
  const auto usable =
      static_cast<std::size_t>(std::count_if(topology.nics.begin(), topology.nics.end(),
                                             [](const HostNic& nic) { return nic.unfit.empty(); }));
  if (topology.gpus.empty())
    return tl::unexpected(Problem{"this machine", "no NVIDIA GPU on PCI, so no NIC to pair",
                                  "ztcp_setup --local N runs ranks without GPUs"});
  if (usable < topology.gpus.size()) {
    std::string unfit;
    for (const HostNic& nic : topology.nics)
      if (!nic.unfit.empty())
        unfit += fmt::format("; {} {}", nic.interface.empty() ? nic.pci : nic.interface, nic.unfit);
    return tl::unexpected(
        Problem{"this machine",
                fmt::format("{} GPUs need {} NICs of their own, {} of {} can be had{}",
                            topology.gpus.size(), topology.gpus.size(), usable,
                            topology.nics.size(), unfit),
                fmt::format("attach {} more elastic NICs to this instance",
                            topology.gpus.size() - usable)});
  }
  std::vector<Edge> edges;
  for (std::size_t gpu = 0; gpu < topology.gpus.size(); ++gpu)
    for (std::size_t nic = 0; nic < topology.nics.size(); ++nic)
      if (topology.nics[nic].unfit.empty())
        edges.push_back({gpu, nic, topology.distances[gpu][nic],
                         topology.gpus[gpu].numa_node != topology.nics[nic].numa_node});
  // Common ancestors form a tree, so taking the deepest first leaves as many as possible for those
  // that must go further: no assignment has more near pairs.
  std::stable_sort(edges.begin(), edges.end(), [](const Edge& a, const Edge& b) {
    if (a.distance.nearness != b.distance.nearness)
      return a.distance.nearness < b.distance.nearness;
    if (a.distance.depth != b.distance.depth) return a.distance.depth > b.distance.depth;
    return a.other_numa_node < b.other_numa_node;
  });
  std::vector<std::optional<Pair>> of_gpu(topology.gpus.size());
  std::vector<bool> taken(topology.nics.size());
  for (const Edge& edge : edges) {
    if (of_gpu[edge.gpu] || taken[edge.nic]) continue;
    taken[edge.nic] = true;
    of_gpu[edge.gpu] = Pair{edge.gpu, edge.nic, edge.distance, reason_for(topology, edge)};
  }
  std::vector<Pair> pairs;
  for (const auto& pair : of_gpu) pairs.push_back(*pair);
  return pairs;
}

}  // namespace ztcp::config
