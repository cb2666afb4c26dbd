// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How a NIC's poller shall run on this machine: with a CPU of its own, or sharing NCCL's threads;
// and where. And how many workers may copy for it: CPUs that no poller wants.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "config/machine/machine.h"
#include "config/settings.h"
#include "transport/core/clock.h"

namespace ztcp::comms {

struct PollerPolicy {
  bool dedicated = false;
  Duration spin{};  // Zero where threads outnumber CPUs: yield at once.
  Duration max_sleep{};
  int cpu = -1;
  std::string reason;  // For the init line: "12 CPUs, 6 wanted".
  std::size_t workers = 0;
  std::vector<std::uint32_t> worker_cpus;  // Where they may run; empty: anywhere.
  std::string workers_reason;              // For the init line: "26 CPUs to spare".
};

// What the machine looks like to this process.
struct CpuView {
  std::vector<std::uint32_t> allowed;   // To the calling thread or the main one.
  std::size_t online = 0;               // CPUs of the machine.
  std::size_t quota = 0;                // CPUs' worth of time the cgroup grants; 0: no limit.
  std::vector<std::uint32_t> near_nic;  // Of the NIC's NUMA node; empty: unknown.
};
CpuView view_cpus(std::int32_t numa_node, config::Machine& machine);

// Where a poller stands among those of this host: each of the fabric's NICs is driven by one
// process, by a poller for each of its queues.
struct PollerPlace {
  std::size_t nic = 0;
  std::size_t nics = 1;
  std::size_t queue = 0;
  std::size_t queues = 1;
  bool embedded = false;  // memif: the processes of all NICs, and a switch, share one CPU mask.
};
PollerPolicy choose_policy(const config::Poller& settings, const CpuView& cpus, PollerPlace place);
// "2 workers (26 CPUs to spare for 2 NICs)", of all the queues of the NIC at `place`.
std::string workers_text(const config::Poller& settings, const CpuView& cpus, PollerPlace place);

}  // namespace ztcp::comms
