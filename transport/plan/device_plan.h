// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How a device runs on this host: one plan, made with the transport, which the init line prints and
// bring-up obeys. A device has *lanes*: execution contexts, each a poller with its thread, its
// connections and, for a NIC that the plugin drives, its queue. Beside them helpers (workers) copy
// or do the system calls of large messages. Pure: the machine was read before (config::CpuShare).
//
// More CPUs, a wider mask or a larger quota never mean fewer lanes: a rank gets its whole mask
// where every rank could have such a mask to itself, and otherwise an equal part of the CPUs that
// all ranks share.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "config/machine/cpu_share.h"
#include "config/settings.h"
#include "core/clock.h"

namespace ztcp::plan {

// Threads of a process beside lanes and helpers: NCCL's progress thread and one of the application.
inline constexpr std::size_t kOtherThreads = 2;

// Lanes that the speed of a NIC on PCI can use; with "auto", the most it gets. The divisors are the
// speed of one core; beyond four lanes the machine's memory is the limit.
constexpr std::uint32_t most_lanes(const config::Nic& nic) {
  if (nic.queues != config::kAutoQueues) return nic.queues;
  constexpr std::uint32_t kMost = 4;
  if (nic.speed_mbps == 0) return 2;
  const std::uint32_t mbps_each = nic.mtu_bytes < 4000 ? 25'000 : 50'000;
  return std::min((nic.speed_mbps + mbps_each - 1) / mbps_each, kMost);
}

// Lanes of each NIC of a mesh of `ranks` processes (at least 2) on `cpus` CPUs of one host, where
// the config does not set them: one for each spare CPU of a process, up to the number that was
// measured to help.
constexpr std::size_t mesh_lanes(std::size_t cpus, std::size_t ranks) {
  const std::size_t most = ranks == 2 ? 6 : 4;
  return std::clamp(cpus / ranks, kOtherThreads + 1, kOtherThreads + most) - kOtherThreads;
}

// CPUs that a NIC with a configured number of workers keeps busy at once. With "auto" there are no
// more lanes than CPUs for them.
constexpr std::size_t busy_cpus(const config::Nic& nic, std::size_t workers) {
  const bool has_told_lanes = config::is_dpdk_nic(nic.driver) && nic.queues != config::kAutoQueues;
  return kOtherThreads + (has_told_lanes ? nic.queues : 1) + workers;
}

// Inputs to the plan of one device, beside the CPUs and [poller] of the config.
struct DeviceFacts {
  // True: kernel sockets, and `count` is the number of this process's interfaces. Else `count` is
  // the number of NICs that the fabric has on this host, each driven by one process.
  bool is_kernels = false;
  bool is_embedded = false;  // memif: the processes of all NICs share one mask.
  std::size_t index = 0;     // The device's, below `count`.
  std::size_t count = 1;
  std::int32_t numa_node = -1;   // -1: unknown.
  std::uint32_t speed_mbps = 0;  // 0: unknown, also where it is only guessed.
  std::size_t nccl_devices = 1;  // nccl_devices().
  std::uint32_t told_flows = 0;  // messages.flows; 0: not set.
  // For NICs that the plugin drives:
  bool is_on_pci = false;
  std::uint32_t told_lanes = 1;       // `queues` of the config, or kAutoQueues.
  std::uint32_t most_lanes = 1;       // most_lanes().
  std::uint32_t available_lanes = 0;  // Queues that the NIC has, known once it is opened; 0:
                                      // unknown.
};
// `index`: the NIC's in the fabric; it must be one that the plugin drives.
DeviceFacts facts_of(const config::Fabric& fabric, std::size_t index);

struct Lane {
  int cpu = -1;             // The lane's own; -1: anywhere in DevicePlan::allowed.
  std::size_t helpers = 0;  // Its share of DevicePlan::helpers.
};

struct DevicePlan {
  std::vector<Lane> lanes;  // At least one.
  std::string lanes_reason;
  // The lane's thread polls all the time; else NCCL's threads do, inside their calls.
  bool is_dedicated = false;
  std::string mode_reason;
  bool takes_over = false;  // Not dedicated: the lane's thread polls while bulk data is in flight.
  Duration spin{};          // Polling time without work before yielding; zero where threads
                            // outnumber CPUs.
  Duration max_sleep{};
  std::size_t helpers = 0;
  std::string helpers_reason;
  std::vector<std::uint32_t> helper_cpus;  // CPUs of the helpers; empty: anywhere in `allowed`.
  std::uint32_t flows = 1;                 // Per connection; chosen for kernel sockets alone.
  std::size_t nccl_devices = 1;
  std::vector<std::uint32_t> allowed;  // CPUs of the process at its start.
  std::string warning;                 // A setting of the config that costs time; empty: none.
};

DevicePlan plan_device(const DeviceFacts& facts, const config::CpuShare& share,
                       const config::Poller& settings);

// --- Bring-up, when the mask may have changed ----------------------------------------------------

// CPUs of a plan's threads among those that the process may use now. The numbers of threads stay.
struct Placement {
  std::vector<std::vector<std::uint32_t>> lane_cpus;  // By lane.
  std::vector<std::uint32_t> helper_cpus;
  std::string warning;  // Why the threads don't run as planned. Empty: they do, or the mask has
                        // room for all.
};
Placement place_threads(const DevicePlan& plan, const std::vector<std::uint32_t>& allowed_now);

// --- Texts of the init line ----------------------------------------------------------------------

// Kernel sockets: "in NCCL's threads, bulk in its own", "12 lanes (16 CPUs), 1 flow".
std::string sockets_text(const DevicePlan& plan);
// NICs that the plugin drives, before they are opened: "1 lane", "up to 2 lanes (auto: ...)".
std::string lanes_text(const DevicePlan& plan);
// ... and afterwards: "2 lanes (auto: ...), their pollers dedicated (8 CPUs, 4 wanted) on CPU 5".
std::string pollers_text(const DevicePlan& plan);
// "2 workers (3 CPUs to spare for this NIC)".
std::string helpers_text(const DevicePlan& plan);

}  // namespace ztcp::plan
