// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Pairs NICs with GPUs.
#include <algorithm>
#include <tuple>

#include <fmt/format.h>

#include "config/topology/topology.h"
#include "core/counted.h"

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
  std::string near = describe(edge.distance.nearness);
  // Number of equally near NICs: with more than one, the tie breakers decided.
  const auto& row = topology.distances[edge.gpu];
  std::size_t equal = 0;
  for (std::size_t nic = 0; nic < row.size(); ++nic)
    if (topology.nics[nic].unfit.empty() && row[nic].depth == edge.distance.depth) ++equal;
  if (equal < 2) return near;
  if (gpu.numa_node < 0 || edge.other_numa_node) return near + ", then device order";
  return near + fmt::format(", then NUMA node {} and device order", gpu.numa_node);
}

std::size_t count_fit(const Topology& topology) {
  return static_cast<std::size_t>(std::count_if(topology.nics.begin(), topology.nics.end(),
                                                [](const auto& nic) { return nic.unfit.empty(); }));
}

// "; eth0 carries the default route; ..."
std::string needs_of(std::size_t gpus) {
  return gpus == 1 ? "1 GPU needs a NIC of its own"
                   : fmt::format("{0} GPUs need {0} NICs of their own", gpus);
}

std::string unfit_list(const Topology& topology) {
  std::string list;
  for (const HostNic& nic : topology.nics)
    if (!nic.unfit.empty())
      list += fmt::format("; {} {}", nic.interface.empty() ? nic.pci : nic.interface, nic.unfit);
  return list;
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

Result<std::vector<Pair>, Problem> assign(const Topology& topology) {
  const std::size_t usable = count_fit(topology);
  if (topology.gpus.empty())
    return tl::unexpected(Problem{"this machine", "no NVIDIA GPU on PCI, so no NIC to pair",
                                  "ztcp_setup --nics all takes NICs without GPUs; ztcp_setup "
                                  "--local N runs ranks inside this machine"});
  if (usable < topology.gpus.size())
    return tl::unexpected(
        Problem{"this machine",
                fmt::format("{}, {} of {} are usable{}", needs_of(topology.gpus.size()), usable,
                            topology.nics.size(), unfit_list(topology)),
                fmt::format("attach {} to this instance",
                            counted(topology.gpus.size() - usable, "more elastic NIC"))});
  std::vector<Edge> edges;
  for (std::size_t gpu = 0; gpu < topology.gpus.size(); ++gpu)
    for (std::size_t nic = 0; nic < topology.nics.size(); ++nic)
      if (topology.nics[nic].unfit.empty())
        edges.push_back({gpu, nic, topology.distances[gpu][nic],
                         topology.gpus[gpu].numa_node != topology.nics[nic].numa_node});
  // Common ancestors form a tree: taking the deepest pairs first leaves the most for GPUs that need
  // farther NICs, so no other assignment has more near pairs.
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
    of_gpu[edge.gpu] = Pair{edge.gpu, edge.nic, reason_for(topology, edge)};
  }
  std::vector<Pair> pairs;
  pairs.reserve(of_gpu.size());
  for (const auto& pair : of_gpu) pairs.push_back(*pair);
  return pairs;
}

std::vector<Pair> share_nics(const Topology& topology) {
  std::vector<Pair> pairs;
  std::vector<std::size_t> served(topology.nics.size());
  for (std::size_t gpu = 0; gpu < topology.gpus.size(); ++gpu) {
    // Nearness, levels of the tree, another NUMA node, GPUs that it serves: less is better.
    using Rank = std::tuple<Nearness, int, bool, std::size_t>;
    std::optional<std::pair<Rank, std::size_t>> best;
    for (std::size_t nic = 0; nic < topology.nics.size(); ++nic) {
      if (!topology.nics[nic].unfit.empty()) continue;
      const Distance& distance = topology.distances[gpu][nic];
      const Rank rank{distance.nearness, -static_cast<int>(distance.depth),
                      topology.gpus[gpu].numa_node != topology.nics[nic].numa_node, served[nic]};
      if (!best || rank < best->first) best.emplace(rank, nic);
    }
    if (!best) return pairs;
    ++served[best->second];
    pairs.push_back({gpu, best->second, describe(topology.distances[gpu][best->second].nearness)});
  }
  for (std::size_t nic = 0; nic < topology.nics.size(); ++nic)
    if (topology.nics[nic].unfit.empty() && served[nic] == 0)
      pairs.push_back(
          {std::nullopt, nic,
           topology.gpus.empty() ? "device order" : "other NICs are as near to each GPU"});
  return pairs;
}

Result<std::vector<Pair>, Problem> take_nics(const Topology& topology, std::size_t count) {
  const std::size_t usable = count_fit(topology);
  if (usable == 0 || usable < count)
    return tl::unexpected(
        Problem{"--nics",
                fmt::format("{} wanted, {} of {} are usable{}",
                            count == 0 ? std::string("all") : fmt::format("{}", count), usable,
                            topology.nics.size(), unfit_list(topology)),
                fmt::format("attach {} to this machine",
                            counted(std::max<std::size_t>(count, 1) - usable, "more NIC"))});
  std::vector<Pair> pairs;
  for (std::size_t nic = 0; nic < topology.nics.size(); ++nic)
    if (topology.nics[nic].unfit.empty() && (count == 0 || pairs.size() < count))
      pairs.push_back({std::nullopt, nic, "device order"});
  return pairs;
}

}  // namespace ztcp::config
