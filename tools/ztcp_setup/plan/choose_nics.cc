// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <algorithm>
#include <set>

#include <fmt/format.h>

#include "tools/ztcp_setup/plan/steps.h"

namespace ztcp::setup {
namespace {

using config::Severity;

// A NIC that vfio-pci has already, and that no config of ours names, belongs to a virtual machine
// or to another program. A NIC without a driver has no interface, and so no address to keep.
void leave_strangers_alone(const PlanInput& input, Plan& plan) {
  for (config::HostNic& nic : plan.topology.nics) {
    if (!nic.unfit.empty() || input.existing_nic(nic.pci) != nullptr) continue;
    if (nic.driver == "vfio-pci")
      nic.unfit = "is bound to vfio-pci already, and not for ztcp";
    else if (nic.interface.empty())
      nic.unfit = "has no interface, so its address is unknown";
  }
}

void take(const Result<std::vector<config::Pair>, config::Problem>& pairs, Plan& plan) {
  if (!pairs) return plan.fault("nics", pairs.error());
  plan.pairs.insert(plan.pairs.end(), pairs->begin(), pairs->end());
}

void take_again(const config::Nic& nic, Plan& plan) {
  const auto& nics = plan.topology.nics;
  const auto found = std::find_if(nics.begin(), nics.end(),
                                  [&](const config::HostNic& one) { return one.pci == nic.pci; });
  if (found == nics.end())
    return plan.note(Severity::kWarning, "nics", nic.name,
                     fmt::format("there is no NIC at {} now, where the config has it", nic.pci),
                     "attach it again, or ztcp_setup to plan anew");
  if (!found->unfit.empty())
    return plan.note(Severity::kFault, "nics", nic.name,
                     fmt::format("{} {}", name_of(*found), found->unfit),
                     "ztcp_setup to plan anew");
  const auto& gpus = plan.topology.gpus;
  const auto gpu = std::find_if(gpus.begin(), gpus.end(),
                                [&](const config::Gpu& one) { return one.pci == nic.gpu_pci; });
  config::Pair pair{std::nullopt, static_cast<std::size_t>(found - nics.begin()),
                    "as in the config"};
  if (gpu != gpus.end()) pair.gpu = static_cast<std::size_t>(gpu - gpus.begin());
  plan.pairs.push_back(pair);
}

// GPUs without a NIC get new NICs; on a machine without GPUs all new NICs are taken.
void take_new(const PlanInput& input, Plan& plan) {
  std::set<std::size_t> served;
  std::set<std::size_t> taken;
  for (const config::Pair& pair : plan.pairs) {
    taken.insert(pair.nic);
    if (pair.gpu) served.insert(*pair.gpu);
  }
  config::Topology rest = plan.topology;
  for (const std::size_t nic : taken) rest.nics[nic].unfit = "is taken by ztcp already";
  const auto fit = static_cast<std::size_t>(
      std::count_if(rest.nics.begin(), rest.nics.end(),
                    [](const config::HostNic& nic) { return nic.unfit.empty(); }));
  std::vector<std::size_t> waiting;
  for (std::size_t gpu = 0; gpu < rest.gpus.size() && waiting.size() < fit; ++gpu)
    if (!served.contains(gpu)) waiting.push_back(gpu);
  if (fit == 0 || (waiting.empty() && !served.empty())) return;  // No new NIC.
  if (waiting.empty()) return take(config::take_nics(rest, input.request.nics.value_or(0)), plan);
  std::vector<config::Gpu> gpus;
  std::vector<std::vector<config::Distance>> distances;
  for (const std::size_t gpu : waiting) {
    gpus.push_back(rest.gpus[gpu]);
    distances.push_back(rest.distances[gpu]);
  }
  rest.gpus = std::move(gpus);
  rest.distances = std::move(distances);
  auto pairs = config::assign(rest);
  if (pairs)
    for (config::Pair& pair : *pairs) pair.gpu = waiting[*pair.gpu];
  take(pairs, plan);
}

constexpr const char* kNothingTaken =
    "; or ztcp_setup --transport sockets: the kernel's TCP, no NIC is taken";

// Options without effect where no NIC is taken; the user expects an effect, so they are faults.
bool speaks_of_taken_nics(const PlanRequest& request) {
  return request.nics || request.queues || request.no_iommu || request.ask_iommu ||
         request.page_kib || request.per_gpu_mib || request.spare_mib;
}

// Sockets were not asked for, and they are slower.
void tell_of_sockets(Plan& plan) {
  plan.note(Severity::kWarning, "transport", "kernel sockets",
            fmt::format("{}; so {} over the kernel's TCP, those with a NIC as well: NCCL pairs "
                        "the devices of two hosts by their order, and a connection has the same "
                        "transport at both ends. The other hosts of a job need the same",
                        plan.sockets->why,
                        plan.topology.gpus.size() == 1
                            ? std::string("the GPU communicates")
                            : fmt::format("all {} GPUs communicate", plan.topology.gpus.size())),
            "the faster way: " + plan.sockets->faster_way);
}

}  // namespace

std::string name_of(const config::HostNic& nic) {
  if (nic.rdma) return nic.rdma->device;
  return nic.interface.empty() ? nic.pci : nic.interface;
}

bool has_name_of(const std::set<std::string, std::less<>>& list, const config::HostNic& nic) {
  const auto has = [&](const std::string& name) { return !name.empty() && list.contains(name); };
  return has(nic.pci) || has(nic.interface) || has(nic.address_interface) ||
         (nic.rdma && has(nic.rdma->device));
}

void choose_nics(const PlanInput& input, Plan& plan) {
  leave_strangers_alone(input, plan);
  const PlanRequest& request = input.request;
  const auto wanted = input.transport();
  if (wanted == Transport::kSockets) {
    choose_interfaces(input, request.transport ? "--transport sockets" : "as in the config", plan);
    return;
  }
  if (wanted == Transport::kXdp || wanted == Transport::kMlx5) {
    choose_interfaces(
        input,
        request.transport ? fmt::format("--transport {}", name_of(*wanted)) : "as in the config",
        plan);
    return;
  }
  if (wanted == Transport::kVerbs)
    return choose_rdma(input, request.transport ? "--transport verbs" : "as in the config", plan);
  if (request.mode == Mode::kFresh) {
    auto pairs = request.nics ? config::take_nics(plan.topology, *request.nics)
                              : config::assign(plan.topology);
    if (!pairs && !wanted) {
      const bool may_fall = !plan.topology.gpus.empty() && !speaks_of_taken_nics(request);
      if (may_fall && choose_interfaces(input, pairs.error().what, plan))
        return tell_of_sockets(plan);
      pairs.error().mend += kNothingTaken;
    }
    return take(pairs, plan);
  }
  if (!input.existing) return;
  for (const config::Nic& nic : input.existing->nics)
    if (nic.driver == config::NicDriver::kPci) take_again(nic, plan);
  take_new(input, plan);
}

}  // namespace ztcp::setup
