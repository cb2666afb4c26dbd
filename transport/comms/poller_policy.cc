// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/poller_policy.h"

#include <algorithm>
#include <charconv>
#include <sched.h>
#include <string_view>
#include <unistd.h>

#include <fmt/format.h>

#include "config/machine/cgroup.h"
#include "config/machine/readings.h"

namespace ztcp::comms {
namespace {

// Beside the pollers of a dedicated NIC: NCCL's progress thread, and one for the training process.
constexpr std::size_t kOtherThreads = 2;

// "0-3,8,10-11", as in sysfs.
std::vector<std::uint32_t> parse_cpu_list(std::string_view text) {
  std::vector<std::uint32_t> out;
  const char* at = text.data();
  const char* const end = at + text.size();
  while (at < end) {
    std::uint32_t first = 0;
    const auto number = std::from_chars(at, end, first);
    if (number.ec != std::errc{}) break;
    const char* after = number.ptr;
    std::uint32_t last = first;
    if (after < end && *after == '-') {
      const auto range = std::from_chars(after + 1, end, last);
      if (range.ec != std::errc{}) break;
      after = range.ptr;
    }
    for (std::uint32_t cpu = first; cpu <= last && cpu < CPU_SETSIZE; ++cpu) out.push_back(cpu);
    at = after < end && *after == ',' ? after + 1 : end;
  }
  return out;
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
    view.near_nic = parse_cpu_list(config::text_of(machine, list));
  }
  return view;
}

PollerPolicy choose_policy(const config::Poller& settings, const CpuView& cpus, PollerPlace place) {
  PollerPolicy policy;
  policy.max_sleep = std::chrono::microseconds(settings.max_sleep_us);

  const std::size_t usable =
      cpus.quota != 0 ? std::min(cpus.quota, cpus.allowed.size()) : cpus.allowed.size();
  // A mask smaller than the machine was given to this rank alone; the whole machine is shared with
  // the processes that drive the fabric's other NICs.
  const bool mask_is_ours = !place.embedded && cpus.allowed.size() < cpus.online;
  const std::size_t nics = mask_is_ours ? 1 : std::max<std::size_t>(place.nics, 1);
  const std::size_t wanted = nics * (place.queues + kOtherThreads);
  policy.spin =
      nics * place.queues > usable ? Duration::zero() : std::chrono::microseconds(settings.spin_us);
  switch (settings.mode) {
    case config::PollerMode::kDedicated:
      policy.dedicated = true;
      policy.reason = "as poller.mode says";
      break;
    case config::PollerMode::kShared:
      policy.reason = "as poller.mode says";
      break;
    case config::PollerMode::kAuto:
      policy.dedicated = usable >= wanted;
      policy.reason = fmt::format("{} CPUs, {} wanted", usable, wanted);
      break;
  }
  if (!policy.dedicated) return policy;

  const auto is_allowed = [&](std::uint32_t cpu) {
    return std::find(cpus.allowed.begin(), cpus.allowed.end(), cpu) != cpus.allowed.end();
  };
  std::vector<std::uint32_t> candidates = settings.cpus.empty() ? cpus.near_nic : settings.cpus;
  std::erase_if(candidates, [&](std::uint32_t cpu) { return !is_allowed(cpu); });
  if (candidates.empty()) return policy;  // Unknown topology: the scheduler knows better.
  // From the end: low CPUs take interrupts and are what other software picks first.
  const std::size_t nth = (place.nic * place.queues + place.queue) % candidates.size();
  policy.cpu = static_cast<int>(settings.cpus.empty() ? candidates[candidates.size() - 1 - nth]
                                                      : candidates[nth]);
  return policy;
}

}  // namespace ztcp::comms
