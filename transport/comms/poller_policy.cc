// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/poller_policy.h"

#include <algorithm>
#include <sched.h>
#include <string_view>
#include <unistd.h>
#include <utility>

#include <fmt/format.h>

#include "config/machine/cgroup.h"
#include "config/machine/cpu_list.h"
#include "config/machine/readings.h"

namespace ztcp::comms {
namespace {

// Beside the pollers of a dedicated NIC: NCCL's progress thread, and one for the training process.
constexpr std::size_t kOtherThreads = 2;

// Each takes a CPU, and more than these were not measured to help.
constexpr std::size_t kMostAutoWorkers = 4;

struct Share {
  std::size_t usable;  // CPUs.
  std::size_t nics;    // Whose threads have to do with them.
  std::size_t wanted;  // CPUs, by these but for workers.
};

Share share_of(const CpuView& cpus, PollerPlace place) {
  // A mask smaller than the machine was given to this rank alone; the whole machine is shared with
  // the processes that drive the fabric's other NICs.
  const bool mask_is_ours = !place.embedded && cpus.allowed.size() < cpus.online;
  const std::size_t nics = mask_is_ours ? 1 : std::max<std::size_t>(place.nics, 1);
  return {
      .usable = cpus.quota != 0 ? std::min(cpus.quota, cpus.allowed.size()) : cpus.allowed.size(),
      .nics = nics,
      .wanted = nics * (place.queues + kOtherThreads)};
}

// Of a NIC's workers those of one queue.
std::size_t part_of(std::size_t workers, PollerPlace place) {
  return workers / place.queues + (place.queue < workers % place.queues ? 1 : 0);
}

void choose_workers(const config::Poller& settings, const Share& share, PollerPlace place,
                    PollerPolicy& policy) {
  if (settings.workers < 0 && place.queues > 1) {
    // Measured: where queues keep the memory busy, workers only take its bandwidth from pollers.
    policy.workers_reason = fmt::format("its {} queues share the work", place.queues);
    return;
  }
  if (settings.workers < 0) {
    const std::size_t spare =
        policy.dedicated && share.usable > share.wanted ? share.usable - share.wanted : 0;
    policy.workers = std::min(spare / share.nics, kMostAutoWorkers);
    policy.workers_reason =
        fmt::format("{} CPUs to spare for {} NIC{}", spare, share.nics, share.nics == 1 ? "" : "s");
    return;
  }
  const auto told = static_cast<std::size_t>(settings.workers);
  // A poller that has to wait for its CPU costs more than workers bring.
  const std::size_t pollers = share.nics * place.queues;
  const std::size_t most = share.usable > pollers ? (share.usable - pollers) / share.nics : 0;
  policy.workers = part_of(std::min(told, most), place);
  policy.workers_reason =
      told <= most
          ? std::string("as poller.workers says")
          : fmt::format("poller.workers is {}, but {} CPU{} for {} poller{}", told, share.usable,
                        share.usable == 1 ? "" : "s", pollers, pollers == 1 ? "" : "s");
}

}  // namespace

CpuView view_cpus(std::int32_t numa_node, config::Machine& machine) {
  CpuView view;
  // NICs start on whichever thread NCCL listens first, and that may be pinned; so may the main
  // thread be, by OpenMP. A process that was given few CPUs has no thread on others.
  cpu_set_t allowed;
  CPU_ZERO(&allowed);
  for (const pid_t thread : {pid_t{0}, getpid()}) {
    cpu_set_t set;
    if (sched_getaffinity(thread, sizeof(set), &set) == 0) CPU_OR(&allowed, &allowed, &set);
  }
  for (std::uint32_t cpu = 0; cpu < CPU_SETSIZE; ++cpu) {
    if (CPU_ISSET(cpu, &allowed)) view.allowed.push_back(cpu);
  }
  view.online = static_cast<std::size_t>(std::max(1L, sysconf(_SC_NPROCESSORS_ONLN)));
  view.quota = config::cpu_quota(machine);
  if (numa_node >= 0) {
    const std::string list =
        "/sys/devices/system/node/node" + std::to_string(numa_node) + "/cpulist";
    view.near_nic = config::parse_cpu_list(config::text_of(machine, list));
  }
  return view;
}

PollerPolicy choose_policy(const config::Poller& settings, const CpuView& cpus, PollerPlace place) {
  PollerPolicy policy;
  policy.max_sleep = std::chrono::microseconds(settings.max_sleep_us);

  const Share share = share_of(cpus, place);
  const std::size_t pollers = share.nics * place.queues;
  policy.spin =
      pollers > share.usable ? Duration::zero() : std::chrono::microseconds(settings.spin_us);
  switch (settings.mode) {
    case config::PollerMode::kDedicated:
      policy.dedicated = true;
      policy.reason = "as poller.mode says";
      break;
    case config::PollerMode::kShared:
      policy.reason = "as poller.mode says";
      break;
    case config::PollerMode::kAuto:
      policy.dedicated = share.usable >= share.wanted;
      policy.reason = fmt::format("{} CPUs, {} wanted", share.usable, share.wanted);
      break;
  }
  choose_workers(settings, share, place, policy);
  if (!policy.dedicated) return policy;

  const auto is_allowed = [&](std::uint32_t cpu) {
    return std::find(cpus.allowed.begin(), cpus.allowed.end(), cpu) != cpus.allowed.end();
  };
  std::vector<std::uint32_t> candidates = settings.cpus.empty() ? cpus.near_nic : settings.cpus;
  std::erase_if(candidates, [&](std::uint32_t cpu) { return !is_allowed(cpu); });
  if (candidates.empty()) return policy;  // Unknown topology: the scheduler knows better.
  // From the end: low CPUs take interrupts and are what other software picks first.
  const auto nth_cpu = [&](std::size_t poller) {
    const std::size_t nth = poller % candidates.size();
    return settings.cpus.empty() ? candidates[candidates.size() - 1 - nth] : candidates[nth];
  };
  policy.cpu = static_cast<int>(nth_cpu(place.nic * place.queues + place.queue));
  // Workers keep away from the CPUs of all pollers, and each has one: a far one rather than half a
  // near one.
  for (const auto* from : {&cpus.near_nic, &cpus.allowed}) {
    if (!policy.worker_cpus.empty() && policy.worker_cpus.size() >= policy.workers) break;
    policy.worker_cpus = *from;
    std::erase_if(policy.worker_cpus, [&](std::uint32_t cpu) { return !is_allowed(cpu); });
    for (std::size_t i = 0; i < place.nics * place.queues; ++i)
      std::erase(policy.worker_cpus, nth_cpu(i));
  }
  return policy;
}

std::string workers_text(const config::Poller& settings, const CpuView& cpus, PollerPlace place) {
  std::size_t workers = 0;
  std::string reason;
  for (place.queue = 0; place.queue < place.queues; ++place.queue) {
    PollerPolicy policy = choose_policy(settings, cpus, place);
    workers += policy.workers;
    reason = std::move(policy.workers_reason);
  }
  return fmt::format(
      "{} ({})",
      workers == 0 ? "no workers" : fmt::format("{} worker{}", workers, workers == 1 ? "" : "s"),
      reason);
}

}  // namespace ztcp::comms
