// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/nic_advice.h"

#include <fmt/format.h>

#include "config/mesh.h"

namespace ztcp::ustack {
namespace {

// "0000:17:00.0", or "0000:17:00.0, 0000:3b:00.0" if the thread's current GPU is not known.
std::string to_text(const ProcessGpus& gpus) {
  const auto name = [](const GpuIdentity& gpu) { return gpu.pci.empty() ? gpu.uuid : gpu.pci; };
  if (gpus.current) return name(*gpus.current);
  std::string text;
  for (const GpuIdentity& gpu : gpus.driven) text += (text.empty() ? "" : ", ") + name(gpu);
  return text.empty() ? "unknown" : text;
}

}  // namespace

std::string carrier_advice(const config::Nic& nic) {
  switch (nic.driver) {
    case config::NicDriver::kMemif:
      return nic.memif_role == config::MemifRole::kMesh
                 ? "is the process of any other NIC of this mesh running?"
                 : "is ztcp_switch, or the process at the other end, running?";
    case config::NicDriver::kTap:
      return fmt::format("is the interface up? See ip link show {}", nic.tap_interface);
    case config::NicDriver::kXdp:
    case config::NicDriver::kMlx5:
      return fmt::format("is the interface up, and its cable in? See ip link show {}",
                         nic.interface);
    case config::NicDriver::kPci:
      return "check its cable and the switch's port; for a virtual machine's NIC, check its host";
    case config::NicDriver::kSocket:
    case config::NicDriver::kVerbs:
      break;  // Another transport's.
  }
  return {};
}

std::string no_route_line(const config::Fabric& fabric, const config::Nic& nic,
                          const ListenAddress& peer, const std::string& why) {
  const bool is_walled = config::is_mesh(nic) || peer.in_shared_memory;
  return fmt::format("{}: no route from {} to {}: it {}: {} in {}", nic.name,
                     config::address_text(nic.address), to_string(peer.endpoint.address), why,
                     is_walled ? "give both ends NICs of one network"
                               : "give both NICs addresses of one family, and put them in one "
                                 "subnet or give the NIC a gateway",
                     fabric.path);
}

std::string shortage_line(const config::Fabric& fabric, const config::Nic& wanted,
                          const ProcessGpus& gpus, const NicShortage& shortage) {
  std::string reasons;
  for (const auto& [i, why] : shortage.unable)
    reasons += (reasons.empty() ? "" : ", ") + fabric.nics[i].name + " " + why;
  return fmt::format(
      "{}: no NIC of this process (GPU {}) can carry its traffic: {}; {}", wanted.name,
      to_text(gpus),
      reasons.empty() ? "each is paired with another GPU in " + fabric.path : reasons,
      shortage.is_one_taken && wanted.processes > 1
          ? "run fewer processes on this host, or ztcp_setup for more"
      : shortage.is_one_taken && !shortage.all_are_ours
          ? "one process drives one NIC, see ztcp_setup --check"
          : "ztcp_setup --check compares the config with this machine");
}

}  // namespace ztcp::ustack
