// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Set-up's decisions about this host: the NICs to take and their GPUs, hugepages, the config, and
// from these the resources. Reads the machine, changes nothing; finds all faults before anything is
// applied.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "config/check/check.h"
#include "config/machine/gpu_direct.h"
#include "config/settings.h"
#include "config/topology/topology.h"
#include "tools/ztcp_setup/host/host.h"
#include "tools/ztcp_setup/plan/boot_line.h"
#include "tools/ztcp_setup/plan/request.h"
#include "tools/ztcp_setup/resources/resource.h"

namespace ztcp::setup {

struct PlanInput {
  Host& host;
  PlanRequest request;
  std::optional<config::Fabric> existing;  // The present config: it describes taken NICs.
  std::string existing_text;
  std::string unit_text;  // See PlanParts.

  // Accounts that may run jobs: as requested, else as in the config.
  const std::string& user() const;
  const std::string& group() const;
  const config::Nic* existing_nic(const std::string& pci) const;
  // The same. Absent: in neither, so the machine decides.
  std::optional<Transport> transport() const;
};

// The decision that all GPUs of this host use interfaces that stay with the kernel.
struct SocketsChoice {
  // ztcp's own TCP past the kernel, kXdp or kMlx5; else the kernel's, kSockets.
  Transport over = Transport::kSockets;
  std::string why;         // "--transport sockets", "4 GPUs need 4 NICs of their own, ..."
  std::string faster_way;  // How to get ztcp's own TCP.
  bool is_past_kernel() const { return over != Transport::kSockets; }
};

// The decision that all GPUs use RDMA devices.
struct VerbsChoice {
  std::string why;  // "--transport verbs"
  config::GpuDirect gpu_direct;
};

struct Plan {
  config::Network network;
  config::Topology topology;
  // The NIC of each GPU: its own, or among kernel NICs the nearest. With verbs topology.nics are
  // the ports of RDMA devices.
  std::vector<config::Pair> pairs;
  std::optional<SocketsChoice> sockets;  // With neither choice: ztcp's own TCP.
  std::optional<VerbsChoice> verbs;
  bool takes_nics() const { return !sockets && !verbs; }
  bool is_over_dpdk() const {
    return takes_nics() || (sockets && sockets->over == Transport::kMlx5);
  }
  // Absent: nothing can be set up; the notes give the reasons.
  std::optional<config::Fabric> fabric;
  std::vector<NodePages> pages;
  std::uint32_t spare_mib = 0;       // Hugepages for the host beside those for GPUs.
  Resources resources;               // Must not be applied while has_faults().
  std::vector<config::Check> notes;  // Faults and warnings.
  std::string speed_origin;          // Source of speeds that neither NIC nor operator gave.
  bool awaits_reboot = false;        // Prepares the next boot only; set-up must run again after it.

  void note(config::Severity severity, std::string name, std::string where, std::string what,
            std::string mend);
  void fault(std::string name, config::Problem problem);
  // The machine's NIC of a NIC in the fabric, and the reverse.
  const config::HostNic& host_nic(const config::Nic& nic) const;
  const config::Nic& fabric_nic(const config::Pair& pair) const;
  std::uint64_t hugepage_mib() const;
  bool has_faults() const;
};

// "mlx5", as --transport has it; and as a sentence has it: "AF_XDP".
const char* name_of(Transport transport);
const char* title_of(Transport transport);

// Whether the config's NIC is this NIC of the machine.
bool is_same(const config::Nic& nic, const config::HostNic& one);

Plan make_plan(const PlanInput& input);

}  // namespace ztcp::setup
