// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// State shared by the checks of run_checks(): the inputs and the results so far. Each check_*()
// judges one thing and adds at least one result where it applies.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "config/check/check.h"
#include "config/machine/rdma.h"

namespace ztcp::config {

// For a config that was written for another machine, or for this one before it changed.
inline constexpr const char* kSetUpAnew =
    "sudo ztcp_setup; ztcp_setup --dry-run shows the changes first";

struct Checklist {
  const Fabric& fabric;
  Machine& machine;
  const GpuList& gpus;
  const NicList& own_nics;
  const AddressList& addresses;
  const XdpFactsByInterface& xdp;
  std::vector<Check> checks;
  std::map<std::pair<std::string, std::uint16_t>, RdmaPort> rdma_ports;  // Cache of the ports read.

  // Cached: each port has hundreds of GID entries, and checks compare NICs with each other.
  const RdmaPort& rdma_port(const Nic& nic) {
    const auto [place, is_new] = rdma_ports.try_emplace({nic.device, nic.device_port});
    if (is_new) place->second = read_rdma_port(machine, nic.device, nic.device_port);
    return place->second;
  }

  void good(std::string name, std::string where, std::string what) {
    checks.push_back({std::move(name), Severity::kGood, {std::move(where), std::move(what), ""}});
  }
  void warning(std::string name, std::string where, std::string what, std::string mend) {
    checks.push_back({std::move(name),
                      Severity::kWarning,
                      {std::move(where), std::move(what), std::move(mend)}});
  }
  void fault(std::string name, std::string where, std::string what, std::string mend) {
    checks.push_back(
        {std::move(name), Severity::kFault, {std::move(where), std::move(what), std::move(mend)}});
  }
};

// Whether the NIC's further checks make sense.
enum class Next : std::uint8_t { kGoOn, kStop };

// settings.cc
void check_speed_units(Checklist& list);
void check_watch_interface(Checklist& list);
void check_timeouts(Checklist& list);
// pci.cc
Next check_pci_device(Checklist& list, const Nic& nic);
Next check_known_speed(Checklist& list, const Nic& nic);
Next check_driver(Checklist& list, const Nic& nic);
Next check_vfio_group(Checklist& list, const Nic& nic);
Next check_pci_interface(Checklist& list, const Nic& nic);
void check_equal_speeds(Checklist& list);
// memif.cc
Next check_memif_path(Checklist& list, const Nic& nic);
Next check_memif_socket(Checklist& list, const Nic& nic);
// tap.cc
Next check_tap_device(Checklist& list, const Nic& nic);
Next check_tap_interface(Checklist& list, const Nic& nic);
// xdp.cc
Next check_xdp_interface(Checklist& list, const Nic& nic);
Next check_xdp_processes(Checklist& list, const Nic& nic);
Next check_xdp_ports(Checklist& list, const Nic& nic);
Next check_xdp_rights(Checklist& list, const Nic& nic);
Next check_xdp_memory(Checklist& list, const Nic& nic);
// mlx5.cc
Next check_mlx5_nic(Checklist& list, const Nic& nic);
Next check_mlx5_access(Checklist& list, const Nic& nic);
Next check_mlx5_rights(Checklist& list, const Nic& nic);
// socket.cc
Next check_socket_interface(Checklist& list, const Nic& nic);
Next check_socket_network(Checklist& list, const Nic& nic);
Next check_listening_ports(Checklist& list, const Nic& nic);
Next check_socket_speed(Checklist& list, const Nic& nic);
void check_socket_buffers(Checklist& list);
void check_socket_switches(Checklist& list);
// verbs.cc
Next check_rdma_device(Checklist& list, const Nic& nic);
Next check_rdma_access(Checklist& list, const Nic& nic);
Next check_rdma_manager(Checklist& list, const Nic& nic);
Next check_rdma_address(Checklist& list, const Nic& nic);
void check_rdma_memory(Checklist& list);
void check_rdma_gpus(Checklist& list);
// verbs_network.cc
Next check_rdma_gid(Checklist& list, const Nic& nic);
Next check_rdma_pkey(Checklist& list, const Nic& nic);
Next check_rdma_mtu(Checklist& list, const Nic& nic);
void check_rdma_speeds(Checklist& list);
// clouds.cc
Next check_cloud_nic(Checklist& list, const Nic& nic);
Next check_rdma_cloud(Checklist& list, const Nic& nic);
// acs.cc
Next check_rdma_acs(Checklist& list, const Nic& nic);
// memory.cc
void check_hugepages(Checklist& list);
void check_locked_memory(Checklist& list);

}  // namespace ztcp::config
