// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What set-up decides about this host: which NICs ztcp gets and for which GPUs, how many hugepages,
// the config, and from these the resources. Reads the machine, changes nothing; finds every fault
// there is before the first of them is applied.
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
  std::optional<config::Fabric> existing;  // The config that is there: it describes taken NICs.
  std::string existing_text;
  std::string unit_text;  // See PlanParts.

  // Who may run jobs: as asked for, else as the config has it.
  const std::string& user() const;
  const std::string& group() const;
  const config::Nic* existing_nic(const std::string& pci) const;
  // The same. Absent: neither says, so that the machine decides.
  std::optional<Transport> transport() const;
};

// That all GPUs of this host go over the kernel's TCP.
struct SocketsChoice {
  std::string why;         // "--transport sockets", "4 GPUs need 4 NICs of their own, ..."
  std::string faster_way;  // To ztcp's own TCP: what to attach, what to run.
};

// That all go over RDMA devices.
struct VerbsChoice {
  std::string why;  // "--transport verbs"
  config::GpuDirect gpu_direct;
};

struct Plan {
  config::Network network;
  config::Topology topology;
  // Which NIC each GPU has: its own, or of those that stay with the kernel the nearest to it. With
  // verbs topology.nics are the ports of RDMA devices.
  std::vector<config::Pair> pairs;
  std::optional<SocketsChoice> sockets;  // With neither of them: ztcp's own TCP.
  std::optional<VerbsChoice> verbs;
  bool takes_nics() const { return !sockets && !verbs; }
  // Without it nothing can be set up, and the notes say why.
  std::optional<config::Fabric> fabric;
  std::vector<NodePages> pages;
  std::uint32_t spare_mib = 0;       // Of the hugepages: the host's, beside those of GPUs.
  Resources resources;               // Not to be applied while has_faults().
  std::vector<config::Check> notes;  // Faults and warnings.
  std::string speed_origin;          // Where speeds come from that no NIC and nobody told.
  bool awaits_reboot = false;        // Only the next boot is prepared; then set-up runs again.

  void note(config::Severity severity, std::string name, std::string where, std::string what,
            std::string mend);
  void fault(std::string name, config::Problem problem);
  // What is on the machine of a NIC of the fabric, and the other way round.
  const config::HostNic& host_nic(const config::Nic& nic) const;
  const config::Nic& fabric_nic(const config::Pair& pair) const;
  std::uint64_t hugepage_mib() const;
  bool has_faults() const;
};

// Whether the config's NIC is this one of the machine.
bool is_same(const config::Nic& nic, const config::HostNic& one);

Plan make_plan(const PlanInput& input);

}  // namespace ztcp::setup
