// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Chooses the interfaces of PCI NICs for a fabric of kernel sockets, AF_XDP or mlx5. Nothing is
// taken from the kernel, so obstacles to ztcp's own TCP on PCI, such as the driver, do not matter
// here; neither does a bond to kernel sockets.
#include <algorithm>
#include <optional>
#include <tuple>

#include <fmt/format.h>

#include "config/machine/readings.h"
#include "config/machine/receive_queues.h"
#include "core/counted.h"
#include "core/nic_families.h"
#include "tools/ztcp_setup/plan/kernel_nics.h"
#include "tools/ztcp_setup/plan/steps.h"

namespace ztcp::setup {
namespace {

using config::Severity;

Transport way_over(const PlanInput& input) {
  const auto wanted = input.transport();
  return wanted == Transport::kXdp || wanted == Transport::kMlx5 ? *wanted : Transport::kSockets;
}

class InterfaceChooser {
 public:
  InterfaceChooser(const PlanInput& input, Plan& plan)
      : input_(input),
        plan_(plan),
        addresses_(input.host.addresses()),
        over_(way_over(input)),
        past_kernel_(over_ != Transport::kSockets) {}

  bool choose() {
    const std::size_t faults = plan_.notes.size();
    for (config::HostNic& nic : plan_.topology.nics) inspect(nic);
    judge_existing();
    if (plan_.notes.size() != faults && plan_.has_faults()) return false;
    share_kernel_nics(input_, nothing_to_use(), plan_);
    return !plan_.pairs.empty();
  }

 private:
  // Finds the interface with the NIC's address: itself, a VLAN on it, or the bond or bridge that it
  // belongs to, and VLANs on that.
  std::vector<std::string> interfaces_above(const std::string& first) const {
    constexpr std::size_t kDeepest = 4;
    std::vector<std::string> names;
    std::optional<std::string> at = first;
    for (std::size_t level = 0; at && level < kDeepest; ++level) {
      names.push_back(*at);
      if (past_kernel_) break;  // These work on the NIC's own interface.
      const config::Interface* lower = plan_.network.find(*at);
      std::vector<std::pair<std::uint16_t, std::string>> vlans;
      for (const config::Interface& one : plan_.network.interfaces)
        if (lower != nullptr && one.kind == "vlan" && one.lower == lower->index)
          vlans.emplace_back(one.vlan_id, one.name);
      std::sort(vlans.begin(), vlans.end());
      for (auto& [tag, name] : vlans) names.push_back(std::move(name));
      at = config::link_name(input_.host, "/sys/class/net/" + *at + "/master");
    }
    return names;
  }

  bool is_in_config(const LocalAddress& one) const {
    if (!input_.existing) return false;
    const auto& nics = input_.existing->nics;
    return std::any_of(nics.begin(), nics.end(), [&](const config::Nic& nic) {
      return nic.driver != config::NicDriver::kPci && nic.interface == one.interface &&
             nic.address.address == one.prefix.address;
    });
  }

  // Prefers the config's own address, then one that others can reach, IPv4 first, as NCCL does.
  const LocalAddress* address_of(const std::vector<std::string>& interfaces) const {
    using Rank = std::tuple<bool, bool, bool, std::size_t>;
    std::optional<std::pair<Rank, const LocalAddress*>> best;
    for (const LocalAddress& one : addresses_) {
      const auto at = std::find(interfaces.begin(), interfaces.end(), one.interface);
      if (at == interfaces.end()) continue;
      const IpAddress& address = one.prefix.address;
      const Rank rank{!is_in_config(one), address.is_link_local(), !address.is_v4(),
                      static_cast<std::size_t>(at - interfaces.begin())};
      if (!best || rank < best->first) best.emplace(rank, &one);
    }
    return best ? best->second : nullptr;
  }

  // Replaces the judgement for ztcp's own TCP by one for kernel sockets.
  void inspect(config::HostNic& nic) {
    nic.unfit.clear();
    nic.address.reset();
    nic.address_interface.clear();
    nic.gateway.reset();
    nic.left_out.clear();
    nic.vlan_id = 0;
    if (nic.interface.empty()) {
      nic.unfit = nic.driver.empty()
                      ? std::string("has no driver, and no interface")
                      : fmt::format("has no interface: its driver is {}", nic.driver);
      return;
    }
    if (plan_.network.find(nic.interface) == nullptr) {
      nic.unfit = "belongs to another network namespace";
      return;
    }
    if (const LocalAddress* own = address_of(interfaces_above(nic.interface)); own == nullptr) {
      nic.unfit = "has no address";
    } else {
      record(*own, nic);
      nic.unfit = why_not(*own, nic);
    }
  }

  void record(const LocalAddress& own, config::HostNic& nic) const {
    nic.address = own.prefix;
    nic.address_interface = own.interface;
    if (own.interface == nic.interface) return;
    const std::string folder = "/sys/class/net/" + own.interface;
    const auto number = [&](const char* file) {
      return static_cast<std::uint32_t>(
          std::max<std::int64_t>(config::read_number(input_.host, folder + file).value_or(0), 0));
    };
    nic.mtu_bytes = number("/mtu");
    nic.speed_mbps = number("/speed");
  }

  std::string why_not(const LocalAddress& own, const config::HostNic& nic) const {
    if (has_name_of(input_.request.selection.keep, nic)) return "was named by --keep";
    if (!own.is_up) return fmt::format("is down ({})", own.interface);
    if (!own.is_running) return fmt::format("has no carrier ({})", own.interface);
    if (over_ == Transport::kMlx5 && nic.driver != kMlx5KernelDriver)
      return fmt::format("has the driver {}, not {}", nic.driver, kMlx5KernelDriver);
    if (over_ == Transport::kXdp)
      if (std::string why = input_.host.xdp_obstacle(own.interface); !why.empty()) return why;
    for (const config::HostNic& other : plan_.topology.nics)
      if (&other < &nic && other.unfit.empty() && other.address_interface == own.interface)
        return fmt::format("shares {} with {}", own.interface, other.pci);
    return {};
  }

  // Judges NICs that ztcp has taken, and interfaces that belong to no NIC on PCI.
  void judge_existing() {
    if (!input_.existing) return;
    for (const config::Nic& nic : input_.existing->nics) {
      if (nic.driver == config::NicDriver::kVerbs) continue;  // A change of transport.
      const auto& nics = plan_.topology.nics;
      const bool on_pci = std::any_of(nics.begin(), nics.end(), [&](const config::HostNic& one) {
        return nic.driver == config::NicDriver::kPci ? one.pci == nic.pci && one.interface.empty()
                                                     : one.address_interface == nic.interface;
      });
      if (nic.driver == config::NicDriver::kPci) {
        if (on_pci)
          plan_.note(
              Severity::kFault, "nics", nic.name,
              fmt::format("{} is taken by ztcp, so the kernel has no interface for it", nic.pci),
              fmt::format("sudo ztcp_setup --undo, then sudo ztcp_setup --transport {}",
                          name_of(over_)));
        continue;
      }
      if (on_pci) continue;
      const bool is_there =
          std::any_of(addresses_.begin(), addresses_.end(),
                      [&](const LocalAddress& one) { return one.interface == nic.interface; });
      if (is_there)
        plan_.note(Severity::kFault, "config", input_.request.config_path,
                   fmt::format("{} is over {}, which belongs to no NIC on PCI: it was written by "
                               "hand, and is not changed",
                               nic.name, nic.interface),
                   "ztcp_setup --config FILE writes another file, or remove this one");
      else
        plan_.note(Severity::kWarning, "nics", nic.name,
                   fmt::format("the config has it on {}, which has no address now, or is gone",
                               nic.interface),
                   "ip -brief address lists addresses; run ztcp_setup again when it is back");
    }
  }

  config::Problem nothing_to_use() const {
    if (past_kernel_)
      return {"this machine",
              fmt::format("no interface of a NIC on PCI is usable for {}", title_of(over_)),
              "sudo ztcp_setup --transport sockets uses bonds and VLANs, too"};
    return {"this machine", "no interface of a NIC on PCI is usable for kernel sockets",
            "sudo ip address add ADDRESS/LENGTH dev IFNAME; or no config at all: "
            "ZTCP_TRANSPORT=sockets takes the interfaces that NCCL's own sockets would take"};
  }

  const PlanInput& input_;
  Plan& plan_;
  const std::vector<LocalAddress> addresses_;
  const Transport over_;
  const bool past_kernel_;
};

std::size_t chosen_interfaces(const Plan& plan) {
  return static_cast<std::size_t>(
      std::count_if(plan.topology.nics.begin(), plan.topology.nics.end(),
                    [](const config::HostNic& nic) { return nic.unfit.empty(); }));
}

// AF_XDP on the interfaces that were chosen for kernel sockets; empty: it can't have all of them.
std::string way_past_kernel(const PlanInput& input, const Plan& plan) {
  if (chosen_interfaces(plan) < plan.topology.gpus.size()) return {};
  std::string interfaces;
  for (const config::HostNic& nic : plan.topology.nics) {
    if (!nic.unfit.empty()) continue;
    if (nic.address_interface != nic.interface || !input.host.xdp_obstacle(nic.interface).empty())
      return {};
    interfaces += (interfaces.empty() ? "" : ", ") + nic.interface;
  }
  return fmt::format(
      "sudo ztcp_setup --transport xdp, ztcp's own TCP on {} while the kernel keeps the NIC; or ",
      interfaces);
}

// The faster transport: RDMA devices if there are any, and "ztcp_setup --transport ustack" with its
// preconditions, before which `past_kernel` is another way.
std::string faster_way(const PlanInput& input, const config::Topology& topology,
                       const std::string& past_kernel) {
  const bool has_rdma =
      std::any_of(topology.rdma.begin(), topology.rdma.end(), [](const config::HostNic& nic) {
        return nic.rdma->is_active() && nic.rdma->kind == config::RdmaKind::kAdapter;
      });
  const std::string over_rdma =
      has_rdma ? "sudo ztcp_setup --transport verbs, over this host's RDMA devices; or " : "";
  const bool for_gpus = !topology.gpus.empty() && !input.request.nics;
  const auto pairs = for_gpus ? config::assign(topology)
                              : config::take_nics(topology, input.request.nics.value_or(0));
  const std::string command =
      std::string("sudo ztcp_setup --transport ustack") +
      (for_gpus                              ? ""
       : input.request.nics.value_or(0) == 0 ? " --nics all"
                                             : fmt::format(" --nics {}", *input.request.nics));
  if (pairs) return over_rdma + command;
  return fmt::format("{}{}{}, then {}", over_rdma, past_kernel, pairs.error().mend, command);
}

// A process for each GPU, each with queues of its own.
bool has_queue_for_each_process(const PlanInput& input, Plan& plan) {
  const std::uint16_t processes = processes_of_each(plan);
  for (const config::HostNic& nic : plan.topology.nics) {
    if (processes == 1 || !nic.unfit.empty()) continue;
    const std::uint32_t queues = config::receive_queues(input.host, nic.interface);
    if (queues == 0 || queues >= processes) continue;
    plan.fault(
        "transport",
        {nic.interface,
         fmt::format("it has {}, and {} share {}: a process for each GPU, {} for each "
                     "interface",
                     counted(queues, "receive queue"), counted(plan.topology.gpus.size(), "GPU"),
                     counted(chosen_interfaces(plan), "interface"), processes),
         fmt::format("sudo ethtool -L {} combined {}; or sudo ztcp_setup --transport sockets",
                     nic.interface, processes)});
  }
  return !plan.has_faults();
}

}  // namespace

bool choose_interfaces(const PlanInput& input, std::string why, Plan& plan) {
  const Transport over = way_over(input);
  config::Topology seen = plan.topology;
  if (!InterfaceChooser(input, plan).choose()) {
    plan.topology = std::move(seen);
    return false;
  }
  if (over == Transport::kXdp && !has_queue_for_each_process(input, plan)) {
    plan.pairs.clear();
    plan.topology = std::move(seen);
    return false;
  }
  if (over == Transport::kMlx5 && chosen_interfaces(plan) < plan.topology.gpus.size())
    plan.note(Severity::kWarning, "transport", title_of(over),
              fmt::format("{} for {}: an interface serves one process at a time, so a job with a "
                          "process for each GPU fails",
                          counted(chosen_interfaces(plan), "interface"),
                          counted(plan.topology.gpus.size(), "GPU")),
              "sudo ztcp_setup --transport sockets, or one process for all GPUs");
  plan.sockets =
      SocketsChoice{over, std::move(why), faster_way(input, seen, way_past_kernel(input, plan))};
  return true;
}

}  // namespace ztcp::setup
