// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Chooses the ports of RDMA devices for a fabric. The kernel keeps the devices and their
// interfaces; processes open the devices in addition.
#include <algorithm>
#include <optional>
#include <tuple>

#include <fmt/format.h>

#include "config/file/key_text.h"
#include "config/machine/gpu_direct.h"
#include "config/machine/readings.h"
#include "core/shell_word.h"
#include "tools/ztcp_setup/plan/kernel_nics.h"
#include "tools/ztcp_setup/plan/steps.h"

namespace ztcp::setup {
namespace {

using config::RdmaKind;
using config::RdmaPort;
using config::Severity;

// The GID that connections will use, by the transport's own rule.
std::optional<GidEntry> gid_of(const PlanInput& input, const config::HostNic& nic) {
  const RdmaPort& port = *nic.rdma;
  const std::size_t place = place_in_config(input, nic);
  const int wanted = place == kNowhere ? -1 : input.existing->nics[place].gid_index;
  GidWish wish;
  if (place != kNowhere) wish.near = input.existing->nics[place].address;
  if (wanted < 0) return choose_gid(port.gids, port.is_infiniband, wish);
  const auto found = std::find_if(port.gids.begin(), port.gids.end(),
                                  [&](const GidEntry& one) { return one.index == wanted; });
  if (found == port.gids.end()) return std::nullopt;
  return *found;
}

class RdmaChooser {
 public:
  RdmaChooser(const PlanInput& input, Plan& plan)
      : input_(input), plan_(plan), addresses_(input.host.addresses()) {}

  void choose() {
    plan_.topology.nics = plan_.topology.rdma;
    plan_.topology.distances = plan_.topology.rdma_distances;
    for (config::HostNic& nic : plan_.topology.nics) inspect(nic);
    judge_existing();
    if (!plan_.has_faults()) share_kernel_nics(input_, nothing_to_use(), plan_);
  }

 private:
  void inspect(config::HostNic& nic) const {
    const auto gid = gid_of(input_, nic);
    nic.gid = gid ? describe(*gid) : std::string(is_iwarp(nic) ? "none" : "");
    const LocalAddress* const own = address_for(nic);
    if (own != nullptr) {
      nic.address = own->prefix;
      nic.address_interface = own->interface;
    }
    nic.unfit = why_not(nic);
  }

  std::string why_not(const config::HostNic& nic) const {
    const RdmaPort& port = *nic.rdma;
    if (has_name_of(input_.request.selection.keep, nic)) return "was named by --keep";
    if (!config::is_name(port.device, config::kLongestDeviceName))
      return fmt::format(
          "has a name that the config's syntax does not allow; sudo rdma dev set {} name NAME",
          shell_word(port.device));
    if (port.kind == RdmaKind::kOther) return "is of a kind that has no reliable connections";
    if (!port.is_active()) return fmt::format("has port {} {}", port.port, port.state);
    if (nic.gid.empty()) return "has no GID that can be used: its interface has no address";
    if (!nic.address && is_iwarp(nic))
      return "has no address on its interface, which iWARP's queue pairs use";
    if (!nic.address) return "finds no address over which queue pairs could be negotiated";
    return {};
  }

  static bool is_iwarp(const config::HostNic& nic) { return nic.rdma->kind == RdmaKind::kIwarp; }

  // Prefers the config's own address, then that of the GID, then one that others can reach: on the
  // port's own interface, or (not for iWARP) on that of the default route; IPv4 first.
  const LocalAddress* address_for(const config::HostNic& nic) const {
    const std::size_t place = place_in_config(input_, nic);
    const auto gid = gid_of(input_, nic);
    using Rank = std::tuple<bool, bool, bool, bool, bool>;
    std::optional<std::pair<Rank, const LocalAddress*>> best;
    for (const LocalAddress& one : addresses_) {
      const IpAddress& address = one.prefix.address;
      const bool is_own = one.interface == nic.interface;
      const bool is_known =
          place != kNowhere && input_.existing->nics[place].address.address == address;
      const bool is_at_hand = is_own || (!is_iwarp(nic) && (is_known || is_way_out(one.interface)));
      if (one.is_loopback || !one.is_up || !is_at_hand) continue;
      const Rank rank{!is_known, !is_own, !gid || address_of(gid->gid) != address,
                      address.is_link_local(), !address.is_v4()};
      if (!best || rank < best->first) best.emplace(rank, &one);
    }
    return best ? best->second : nullptr;
  }

  bool is_way_out(const std::string& interface) const {
    const config::Interface* found = plan_.network.find(interface);
    return found != nullptr && std::any_of(plan_.network.routes.begin(), plan_.network.routes.end(),
                                           [&](const config::Route& route) {
                                             return route.destination.length == 0 &&
                                                    route.interface == found->index;
                                           });
  }

  void judge_existing() {
    if (!input_.existing) return;
    for (const config::Nic& nic : input_.existing->nics) {
      const auto& nics = plan_.topology.nics;
      if (nic.driver == config::NicDriver::kPci) {
        if (config::link_name(input_.host, config::pci_folder(nic.pci) + "/driver") == "vfio-pci")
          plan_.note(
              Severity::kFault, "nics", nic.name,
              fmt::format("{} is taken by ztcp, so the kernel has no device for it", nic.pci),
              "sudo ztcp_setup --undo, then sudo ztcp_setup --transport verbs");
      } else if (nic.driver == config::NicDriver::kVerbs &&
                 std::none_of(nics.begin(), nics.end(),
                              [&](const config::HostNic& one) { return is_same(nic, one); })) {
        plan_.note(Severity::kWarning, "nics", nic.name,
                   fmt::format("the config has it on port {} of {}, which is gone", nic.device_port,
                               nic.device),
                   "rdma link lists the devices; run ztcp_setup again when it is back");
      }
    }
  }

  config::Problem nothing_to_use() const {
    if (plan_.topology.nics.empty())
      return {"this machine", "no RDMA device (rdma link lists none)",
              "load the NICs' RDMA driver (modprobe mlx5_ib, ...); or ztcp_setup --transport "
              "sockets"};
    return {"this machine", "no RDMA device is usable",
            "sudo ip link set dev IFNAME up brings a port up, sudo ip address add ADDRESS/LENGTH "
            "dev IFNAME gives it a GID; or ztcp_setup --transport sockets"};
  }

  const PlanInput& input_;
  Plan& plan_;
  const std::vector<LocalAddress> addresses_;
};

}  // namespace

void choose_rdma(const PlanInput& input, std::string why, Plan& plan) {
  plan.verbs = VerbsChoice{std::move(why), config::read_gpu_direct(input.host)};
  RdmaChooser(input, plan).choose();
}

}  // namespace ztcp::setup
