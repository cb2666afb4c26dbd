// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <algorithm>

#include <fmt/format.h>

#include "tools/ztcp_setup/plan/lease.h"
#include "tools/ztcp_setup/plan/steps.h"

namespace ztcp::setup {
namespace {

using config::Severity;

void judge_mac(const config::Nic& nic, const config::HostNic& found, Plan& plan) {
  if (!found.interface.empty() && found.mac != nic.mac)
    plan.note(Severity::kFault, "nics", nic.name,
              fmt::format("mac = {} in the config, {} has {}: another NIC took its place",
                          to_string(nic.mac), found.interface, to_string(found.mac)),
              "ztcp_setup to plan anew");
}

void record_lease(const PlanInput& input, const config::HostNic& found, Plan& plan) {
  const config::Interface* interface = plan.network.find(found.address_interface);
  const IpAddress address = found.address->address;
  const auto lease = address.is_v4()
                         ? find_lease(input.host, found.address_interface,
                                      interface == nullptr ? 0 : interface->index, address.v4())
                         : std::nullopt;
  if (!lease && found.valid_s == config::InterfaceAddress::kForever) return;
  std::string from = address.is_v4() ? "by DHCP" : "by DHCPv6 or a router's advertisements";
  if (lease) from = fmt::format("by DHCP ({}, {})", lease->client, lease->file);
  if (lease && !lease->server.empty()) from += " from " + lease->server;
  const std::string left = found.valid_s == config::InterfaceAddress::kForever
                               ? std::string()
                               : fmt::format(", {} s of it left", found.valid_s);
  const std::string time =
      lease && lease->lifetime_s > 0 ? fmt::format(" for {} s", lease->lifetime_s) : std::string();
  plan.note(
      Severity::kWarning, "lease", found.address_interface,
      fmt::format("{} is leased {}{}{}; it is not renewed once ztcp has the NIC",
                  to_string(*found.address), from, time, left),
      "reserve the address for this NIC at the server (clouds do), or configure it as static");
}

void record(const PlanInput& input, const config::HostNic& found, config::Nic& nic, Plan& plan) {
  nic.kernel_driver = found.driver;
  nic.mac = found.mac;
  nic.mtu_bytes = static_cast<std::uint16_t>(std::clamp(found.mtu_bytes, 576U, 9216U));
  if (found.speed_mbps != 0) nic.speed_mbps = found.speed_mbps;
  if (!found.address) return;
  nic.address = found.is_address_advertised ? config::kAutoAddress : *found.address;
  nic.gateway = found.gateway;
  nic.vlan_id = found.vlan_id;
  if (nic.vlan_id == 0) nic.vlan_priority = -1;
  if (!found.left_out.empty())
    plan.note(Severity::kWarning, "address", found.interface,
              fmt::format("{} on {} is used; unavailable to this machine until --undo: {}",
                          to_string(*found.address), found.address_interface,
                          fmt::join(found.left_out, ", ")),
              fmt::format("ztcp_setup --keep {} leaves the NIC to the kernel", found.interface));
  // ztcp renews what routers advertise.
  if (!found.is_address_advertised) record_lease(input, found, plan);
}

// The kernel driver's limit also holds for ztcp's own driver. It is unknown for a NIC that ztcp has
// already.
void choose_queues(const PlanInput& input, const config::HostNic& found, config::Nic& nic,
                   Plan& plan) {
  nic.queues = input.request.queues.value_or(nic.queues);
  if (found.interface.empty() || nic.queues <= 1) return;  // "auto" takes as many as there are.
  const auto most = input.host.most_queues(found.interface);
  if (most && *most < nic.queues)
    plan.note(Severity::kFault, "queues", name_of(found),
              fmt::format("{} queues wanted, but its driver {} has at most {}", nic.queues,
                          found.driver, *most),
              fmt::format("ztcp_setup --queues {}, or --queues auto", *most));
}

}  // namespace

std::string device_name(const PlanInput& input, const config::Nic& nic,
                        const config::Fabric& fabric) {
  if (input.request.mode != Mode::kFresh && !nic.name.empty()) return nic.name;
  for (std::size_t number = fabric.nics.size();; ++number) {
    std::string name = fmt::format("ztcp{}", number);
    if (std::none_of(fabric.nics.begin(), fabric.nics.end(),
                     [&](const config::Nic& other) { return other.name == name; }))
      return name;
  }
}

config::Nic describe_nic(const PlanInput& input, Plan& plan, const config::Pair& pair,
                         const config::Fabric& fabric) {
  const config::HostNic& found = plan.topology.nics[pair.nic];
  config::Nic nic;
  // A NIC shows its properties while the kernel has it; afterwards only the config has them.
  const config::Nic* known = input.existing_nic(found.pci);
  if (known != nullptr) nic = *known;
  nic.name = device_name(input, nic, fabric);
  if (known != nullptr && input.request.mode != Mode::kFresh) {
    judge_mac(nic, found, plan);
    return nic;
  }
  nic.driver = config::NicDriver::kPci;
  choose_queues(input, found, nic, plan);
  nic.pci = found.pci;
  nic.numa_node = found.numa_node;
  nic.gpu_pci = pair.gpu ? plan.topology.gpus[*pair.gpu].pci : "";
  nic.gpu_uuid = pair.gpu ? plan.topology.gpus[*pair.gpu].uuid : "";
  // On a cloned disk image the config's address is another machine's.
  if (known != nullptr && !found.interface.empty() && known->mac != found.mac) {
    nic.address = {};
    nic.gateway.reset();
    nic.vlan_id = 0;
    nic.vlan_priority = -1;
    nic.speed_mbps = 0;
  }
  // A NIC that fell back to its kernel driver without its address keeps the config's values.
  const bool fell_back = known != nullptr && known->mac == found.mac && !found.address;
  if (!found.interface.empty() && !fell_back) record(input, found, nic, plan);
  if (nic.address == IpPrefix())
    plan.note(Severity::kFault, "address", name_of(found),
              "has no address for the config to take over",
              fmt::format("sudo ip address add ADDRESS/LENGTH dev {}, as the network assigned it, "
                          "or ztcp_setup --keep {}",
                          name_of(found), name_of(found)));
  return nic;
}

}  // namespace ztcp::setup
