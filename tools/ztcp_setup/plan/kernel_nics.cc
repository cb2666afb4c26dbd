// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/plan/kernel_nics.h"

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "config/machine/xdp_mtu.h"
#include "config/network/reserved.h"
#include "core/shell_word.h"
#include "tools/ztcp_setup/plan/steps.h"

namespace ztcp::setup {
namespace {

// Its name for --take.
std::string word_for(const config::HostNic& nic) {
  return shell_word(nic.rdma ? nic.rdma->device : nic.address_interface);
}

class Leaving {
 public:
  Leaving(const PlanInput& input, Plan& plan) : input_(input), plan_(plan) {}

  // NCCL prefers a faster device to a nearer one, so a slow one would be idle at best.
  void leave_slow_ones() {
    std::uint32_t fastest = 0;
    for (const config::HostNic& nic : nics())
      if (nic.unfit.empty()) fastest = std::max(fastest, nic.speed_mbps);
    for (config::HostNic& nic : nics())
      if (nic.unfit.empty() && nic.speed_mbps != 0 && nic.speed_mbps < fastest && !is_wanted(nic))
        nic.unfit = fmt::format("has {} Mb/s, another has {}; --take {} uses it all the same",
                                nic.speed_mbps, fastest, word_for(nic));
  }

  // An interface that the machine itself needs (default route, ssh, storage) is used for jobs only
  // if there is no other.
  void leave_reserved_ones() {
    const config::Reserved reserved = config::reserved_interfaces(
        input_.host, plan_.network, input_.request.selection.ssh_connection);
    const auto reservation = [&](const config::HostNic& nic) -> const config::Reservation* {
      // RDMA data uses the port itself, independent of the interface for negotiation.
      const auto found = reserved.find(nic.rdma ? nic.interface : nic.address_interface);
      return found == reserved.end() || found->second.yields || is_wanted(nic) ? nullptr
                                                                               : &found->second;
    };
    if (std::none_of(nics().begin(), nics().end(), [&](const config::HostNic& nic) {
          return nic.unfit.empty() && reservation(nic) == nullptr;
        }))
      return;
    for (config::HostNic& nic : nics())
      if (const config::Reservation* why = reservation(nic); nic.unfit.empty() && why != nullptr)
        nic.unfit = fmt::format("{}; --take {} uses it as well", why->why, word_for(nic));
  }

  void leave_all_but(unsigned count) {
    for (config::HostNic& nic : nics()) {
      if (!nic.unfit.empty()) continue;
      if (count == 0) nic.unfit = "is beyond the number given by --nics";
      count -= count == 0 ? 0 : 1;
    }
  }

 private:
  std::vector<config::HostNic>& nics() { return plan_.topology.nics; }
  bool is_wanted(const config::HostNic& nic) const {
    return has_name_of(input_.request.selection.take, nic) ||
           place_in_config(input_, nic) != kNowhere;
  }

  const PlanInput& input_;
  Plan& plan_;
};

// Whether each GPU has a NIC of its own: the config can name only one GPU for a NIC.
bool are_pairs(const Plan& plan) {
  std::set<std::size_t> taken;
  for (const config::Pair& pair : plan.pairs)
    if (pair.gpu && !taken.insert(pair.nic).second) return false;
  return taken.size() == plan.topology.gpus.size();
}

void describe_port(const Plan& plan, const config::HostNic& found, config::Nic& nic) {
  nic.driver = config::NicDriver::kVerbs;
  nic.device = found.rdma->device;
  nic.device_port = found.rdma->port;
  nic.gpu_pci.clear();
  nic.gpu_uuid.clear();
  if (!are_pairs(plan)) return;
  for (const config::Pair& pair : plan.pairs)
    if (pair.gpu && &plan.topology.nics[pair.nic] == &found) {
      nic.gpu_pci = plan.topology.gpus[*pair.gpu].pci;
      nic.gpu_uuid = plan.topology.gpus[*pair.gpu].uuid;
    }
}

// Ports that Linux gives to no connection by default. The config's own stay, and so does a larger
// number of processes.
void describe_past_kernel(const PlanInput& input, const config::HostNic& found, const Plan& plan,
                          config::Nic& nic) {
  constexpr std::uint32_t kMostMtuBytes = 9216;
  if (!config::is_past_kernel(nic.driver)) {
    nic.first_port = 61000;
    nic.last_port = 65535;
  }
  const bool is_xdp = plan.sockets->over == Transport::kXdp;
  nic.driver = is_xdp ? config::NicDriver::kXdp : config::NicDriver::kMlx5;
  nic.processes = is_xdp ? std::max(nic.processes, processes_of_each(plan)) : std::uint16_t{1};
  const std::uint32_t most = is_xdp ? config::largest_xdp_mtu(input.host) : kMostMtuBytes;
  nic.mtu_bytes = static_cast<std::uint16_t>(std::min({found.mtu_bytes, kMostMtuBytes, most}));
  if (is_xdp && nic.queues == config::kAutoQueues) nic.queues = 1;
  if (!is_xdp) nic.queues = input.request.queues.value_or(nic.queues);
}

}  // namespace

std::uint16_t processes_of_each(const Plan& plan) {
  const auto interfaces =
      std::count_if(plan.topology.nics.begin(), plan.topology.nics.end(),
                    [](const config::HostNic& nic) { return nic.unfit.empty(); });
  const auto gpus = static_cast<std::ptrdiff_t>(plan.topology.gpus.size());
  return static_cast<std::uint16_t>(
      interfaces == 0 ? 1 : std::max<std::ptrdiff_t>(1, (gpus + interfaces - 1) / interfaces));
}

std::size_t place_in_config(const PlanInput& input, const config::HostNic& nic) {
  if (!input.existing) return kNowhere;
  const auto& nics = input.existing->nics;
  // NICs that ztcp's own TCP had are described anew.
  const auto found = std::find_if(nics.begin(), nics.end(), [&](const config::Nic& one) {
    return one.driver != config::NicDriver::kPci && is_same(one, nic);
  });
  return found == nics.end() ? kNowhere : static_cast<std::size_t>(found - nics.begin());
}

void share_kernel_nics(const PlanInput& input, config::Problem nothing, Plan& plan) {
  Leaving leaving(input, plan);
  leaving.leave_slow_ones();
  leaving.leave_reserved_ones();
  if (input.request.nics.value_or(PlanRequest::kAllNics) != PlanRequest::kAllNics)
    leaving.leave_all_but(*input.request.nics);
  plan.pairs = config::share_nics(plan.topology);
  if (!plan.pairs.empty()) return;
  for (const config::HostNic& nic : plan.topology.nics)
    nothing.what += fmt::format("; {} {}", name_of(nic), nic.unfit);
  plan.fault("transport", std::move(nothing));
}

std::vector<config::Nic> describe_kernel_nics(const PlanInput& input, const Plan& plan) {
  std::vector<const config::HostNic*> found;
  for (const config::HostNic& one : plan.topology.nics)
    if (one.unfit.empty()) found.push_back(&one);
  // Added NICs follow the config's own, in unchanged order.
  if (input.request.mode == Mode::kAdd)
    std::stable_sort(found.begin(), found.end(), [&](const auto* a, const auto* b) {
      return place_in_config(input, *a) < place_in_config(input, *b);
    });
  config::Fabric fabric;
  for (const config::HostNic* one : found) {
    const std::size_t place = place_in_config(input, *one);
    config::Nic nic;
    if (place != kNowhere) nic = input.existing->nics[place];
    nic.name = device_name(input, nic, fabric);
    nic.address = *one->address;
    nic.numa_node = one->numa_node;
    if (one->rdma) {
      describe_port(plan, *one, nic);
    } else {
      nic.interface = one->address_interface;
      if (plan.sockets->is_past_kernel())
        describe_past_kernel(input, *one, plan, nic);
      else
        nic.driver = config::NicDriver::kSocket;
    }
    fabric.nics.push_back(std::move(nic));
  }
  return std::move(fabric.nics);
}

}  // namespace ztcp::setup
