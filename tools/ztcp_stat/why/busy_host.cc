// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Faults of the process's surroundings: CPU quota, busy CPUs, descriptor table.
#include <fmt/format.h>

#include "tools/ztcp_stat/view/units.h"
#include "tools/ztcp_stat/why/case.h"

namespace ztcp::stat {
namespace {

using stats::Counter;

constexpr double kThrottledShare = 0.01;
constexpr double kLateShare = 0.005;
constexpr std::uint64_t kLateTurns = 5;
constexpr double kSevereShare = 0.2;
constexpr double kDescriptorShare = 0.9;
constexpr double kSevereDescriptorShare = 0.98;

void find_quota(const Case& one, Findings& findings) {
  const std::uint64_t throttled = one.window.throttled_ns();
  const double window_ns = one.window.seconds() * 1e9;
  if (throttled == 0 || static_cast<double>(throttled) < kThrottledShare * window_ns) return;
  const stats::Process& process = one.now().process;
  const double share = static_cast<double>(throttled) / window_ns;
  findings.push_back(
      {share >= kSevereShare ? Severity::kSevere : Severity::kWarning, Rule::kQuota,
       process_name(process),
       fmt::format(
           "was stopped for {}, summed over its CPUs, in the last {} by the CPU quota of its "
           "cgroup: raise or remove the quota (cpu.max; Kubernetes: limits.cpu)",
           time_text(throttled), seconds_text(one.window.seconds())),
       fmt::format("cat /sys/fs/cgroup$(cut -d: -f3 /proc/{0}/cgroup | tail -1)/cpu.stat",
                   process.pid),
       share});
}

// A thread whose CPU the host of a virtual machine has taken is late by no more than that time.
std::string cause_of_delay(std::uint64_t stolen_ns, std::uint64_t late_ns) {
  if (stolen_ns == 0) return "other threads have its CPUs";
  return fmt::format("{}the host of this virtual machine took {} of CPU time from it",
                     stolen_ns < late_ns ? "other threads have its CPUs, and " : "",
                     time_text(stolen_ns));
}

void find_late_threads(const Case& one, Findings& findings) {
  const double window_ns = one.window.seconds() * 1e9;
  for (const stats::Device& device : one.now().devices) {
    const std::uint64_t turns = one.window.count(device, Counter::kLateTurns);
    const std::uint64_t time = one.window.count(device, Counter::kLateTurnTime);
    const double share = window_ns > 0 ? static_cast<double>(time) / window_ns : 0;
    if (turns == 0 || (share < kLateShare && turns < kLateTurns)) continue;
    std::string cpus;
    for (const stats::Lane& lane : one.now().lanes)
      if (lane.device == device.index && lane.cpu >= 0 &&
          one.window.count(lane, Counter::kLateTurns) > 0)
        cpus += fmt::format("{}{}", cpus.empty() ? " on CPU " : ", ", lane.cpu);
    findings.push_back({share >= kSevereShare ? Severity::kSevere : Severity::kWarning, Rule::kLate,
                        device_name(one, device),
                        fmt::format("ran late {} in the last {}, by {} in all{}: {}",
                                    turns == 1 ? "once" : fmt::format("{} times", turns),
                                    seconds_text(one.window.seconds()), time_text(time), cpus,
                                    cause_of_delay(one.window.stolen_ns(), time)),
                        fmt::format("top -H; grep . /proc/{}/task/*/schedstat; grep cpu /proc/stat",
                                    one.now().process.pid),
                        share});
  }
}

void find_full_descriptor_table(const Case& one, Findings& findings) {
  const stats::Process& process = one.now().process;
  if (process.descriptors_limit == 0) return;
  const double share = static_cast<double>(process.descriptors_open) /
                       static_cast<double>(process.descriptors_limit);
  if (share < kDescriptorShare) return;
  findings.push_back(
      {share >= kSevereDescriptorShare ? Severity::kSevere : Severity::kWarning, Rule::kDescriptors,
       process_name(process),
       fmt::format("has {} of {} descriptors open: connections fail at the limit; start the job "
                   "with a larger one (ulimit -n, LimitNOFILE)",
                   process.descriptors_open, process.descriptors_limit),
       fmt::format("prlimit --pid {} --nofile", process.pid), share});
}

}  // namespace

void find_busy_host(const Case& one, Findings& findings) {
  if (!one.is_running()) return;
  find_quota(one, findings);
  find_late_threads(one, findings);
  find_full_descriptor_table(one, findings);
}

}  // namespace ztcp::stat
