// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/plan/device_plan.h"

#include <array>
#include <chrono>

namespace ztcp::plan {
namespace {

// Each takes a CPU, and more than these did not help when measured.
constexpr std::size_t kMostAutoCopiers = 4;
constexpr std::size_t kMostAutoCallers = 8;
// Kernel sockets: helpers that one lane's thread can keep busy.
constexpr std::size_t kHelpersOfLane = 4;
// Kernel sockets: most that one thread carries each way.
constexpr std::uint32_t kMbpsEach = 12'500;
constexpr std::uint32_t kMostAutoFlows = 4;
// Kernel sockets, exposed as several NCCL devices: more lanes than the largest number are no gain,
// and numbers in between were not measured (bench/results/nccl-h200-sockets.md).
constexpr std::array<std::size_t, 5> kLanes = {12, 8, 6, 4, 2};

std::string counted(std::size_t count, const char* what) {
  return std::to_string(count) + " " + what + (count == 1 ? "" : "s");
}

// One rank's share of the host's CPUs.
struct Part {
  std::size_t usable = 0;   // CPUs of the process, by mask and quota.
  std::size_t sharers = 1;  // Ranks, or processes that drive NICs.
  std::string sharers_text;
  std::size_t devices = 1;  // The rank's.
  std::size_t cpus = 0;     // The rank's; 0: less than one.
  std::size_t spare = 0;    // For each of its devices, beside the other threads.
  std::string text;         // "16 CPUs for each of 2 ranks (2 GPUs)".
};

Part part_of(const DeviceFacts& facts, const config::CpuShare& share) {
  Part part;
  // Where the number of ranks is unknown, each NIC that the plugin drives has a process.
  const bool counts_nics = facts.is_embedded || (!facts.is_kernels && share.ranks.source.empty());
  part.sharers = std::max<std::size_t>(counts_nics ? facts.count : share.ranks.count, 1);
  part.devices = facts.is_kernels ? facts.count : (facts.count + part.sharers - 1) / part.sharers;
  const std::size_t mask = share.allowed.size();
  // All processes of an embedded fabric have the same mask, however large the host is.
  const std::size_t common = facts.is_embedded ? mask : std::max(share.common, mask);
  part.usable = share.quota != 0 ? std::min(share.quota, mask) : mask;
  part.cpus = std::min(mask, common / part.sharers);
  if (share.quota != 0) part.cpus = std::min(part.cpus, share.quota / part.sharers);
  part.spare = part.cpus > kOtherThreads ? (part.cpus - kOtherThreads) / part.devices : 0;
  part.text = counted(std::max<std::size_t>(part.cpus, 1), "CPU");
  if (part.cpus < part.usable)
    part.text += " for each of " +
                 (counts_nics ? counted(part.sharers, "NIC")
                              : counted(part.sharers, "rank") + " (" + share.ranks.source + ")");
  return part;
}

Duration spin_of(const config::Poller& settings, const Part& part, std::size_t lanes) {
  return part.devices * lanes > part.cpus ? Duration::zero()
                                          : std::chrono::microseconds(settings.spin_us);
}

// --- Kernel sockets ------------------------------------------------------------------------------

// 1: too few threads for several lanes.
std::size_t lanes_among(std::size_t threads) {
  const auto* const fits =
      std::ranges::find_if(kLanes, [&](std::size_t lanes) { return lanes <= threads; });
  return fits == kLanes.end() ? 1 : *fits;
}

// The threads that remain when each kHelpersOfLane of them need one thread for their lane.
std::size_t callers_among(std::size_t threads) {
  return threads - (threads + kHelpersOfLane) / (kHelpersOfLane + 1);
}

// Where an interface is exposed as several NCCL devices there are many connections, and lanes alone
// carry them: a thread hands on the bytes that it received while they are in its own cache. Where
// it is exposed as one, a single connection must fill the interface, so helpers and flows share its
// bytes.
void plan_sockets(const DeviceFacts& facts, const config::Poller& settings, const Part& part,
                  DevicePlan& plan) {
  const std::size_t useful =
      facts.speed_mbps == 0 ? part.spare : (facts.speed_mbps + kMbpsEach - 1) / kMbpsEach;
  const std::size_t many = lanes_among(std::min(part.spare, useful));
  const bool is_told = settings.workers >= 0;
  plan.is_dedicated = settings.mode == config::PollerMode::kDedicated;
  const bool has_helpers = facts.nccl_devices == 1 || is_told || plan.is_dedicated;
  if (has_helpers && !is_told)
    plan.helpers = std::min({callers_among(part.spare), useful, kMostAutoCallers});
  else if (is_told && part.usable > 1)  // On a single CPU a helper only takes its caller's time.
    plan.helpers = static_cast<std::size_t>(settings.workers);
  std::size_t lanes = 1;
  // A dedicated thread is the only lane.
  if (!plan.is_dedicated) {
    lanes = has_helpers ? std::max<std::size_t>(1, plan.helpers / kHelpersOfLane) : many;
    plan.takes_over = is_told ? plan.helpers != 0 : part.spare != 0;
  }
  plan.lanes.resize(lanes);
  plan.spin = spin_of(settings, part, lanes);

  if (is_told) {
    plan.lanes_reason = part.usable > 1 || settings.workers == 0
                            ? "as poller.workers says"
                            : "poller.workers is " + std::to_string(settings.workers) +
                                  ", but the process may use one CPU";
  } else {
    plan.lanes_reason = part.text;
    const bool is_speeds = has_helpers ? plan.helpers == useful : many < lanes_among(part.spare);
    if (facts.speed_mbps != 0 && is_speeds)
      plan.lanes_reason += ", " + std::to_string(facts.speed_mbps / 1000) + " Gb/s";
  }
  plan.helpers_reason = plan.lanes_reason;
  plan.mode_reason = settings.mode == config::PollerMode::kAuto
                         ? "small messages leave within NCCL's calls"
                         : "as poller.mode says";
  // One flow for small messages and, where there are helpers, further flows for bulk.
  if (facts.told_flows != 0) {
    plan.flows = facts.told_flows;
  } else if (plan.helpers != 0) {
    const auto movers = static_cast<std::uint32_t>(plan.helpers + 1);
    plan.flows = 1 + std::clamp<std::uint32_t>(movers, 2, kMostAutoFlows);
  }
}

// --- NICs that the plugin drives -----------------------------------------------------------------

std::size_t choose_lanes(const DeviceFacts& facts, const Part& part, DevicePlan& plan) {
  std::size_t lanes = facts.told_lanes;
  if (facts.told_lanes == config::kAutoQueues) {
    const std::size_t enough = std::max<std::size_t>(part.spare, 1);
    lanes = std::min<std::size_t>(facts.most_lanes, enough);
    plan.lanes_reason =
        "auto: " + std::to_string(facts.most_lanes) + " for " +
        (facts.speed_mbps == 0 ? "an unknown speed" : std::to_string(facts.speed_mbps) + " Mb/s") +
        ", and " + part.text + (part.cpus <= 1 ? " suffices for " : " suffice for ") +
        std::to_string(enough);
  } else if (facts.is_on_pci && lanes > part.usable) {
    plan.warning = "queues = " + std::to_string(lanes) +
                   " in the config, and this process may run on " + std::to_string(part.usable) +
                   " CPUs, which they share: that costs time; write queues = " +
                   std::to_string(std::max<std::size_t>(part.usable, 1)) + ", or queues = \"auto\"";
  }
  if (facts.available_lanes == 0 || facts.available_lanes >= lanes) return lanes;
  if (facts.told_lanes == config::kAutoQueues)
    plan.lanes_reason += ", of which the NIC has " + std::to_string(facts.available_lanes);
  return facts.available_lanes;
}

void choose_mode(const config::Poller& settings, const Part& part, std::size_t lanes,
                 DevicePlan& plan) {
  if (settings.mode != config::PollerMode::kAuto) {
    plan.is_dedicated = settings.mode == config::PollerMode::kDedicated;
    plan.mode_reason = "as poller.mode says";
    return;
  }
  plan.is_dedicated = part.spare >= lanes;
  plan.mode_reason =
      part.text + ", " + std::to_string(part.devices * lanes + kOtherThreads) + " wanted";
}

void choose_copiers(const config::Poller& settings, const Part& part, std::size_t lanes,
                    DevicePlan& plan) {
  if (settings.workers < 0 && lanes > 1) {
    // Measured: where lanes keep the memory busy, helpers only take bandwidth from them.
    plan.helpers_reason = "its " + std::to_string(lanes) + " lanes share the work";
    return;
  }
  if (settings.workers < 0) {
    const std::size_t spare = plan.is_dedicated && part.spare > lanes ? part.spare - lanes : 0;
    plan.helpers = std::min(spare, kMostAutoCopiers);
    plan.helpers_reason = counted(spare, "CPU") + " to spare for this NIC";
    return;
  }
  const auto told = static_cast<std::size_t>(settings.workers);
  // A lane that has to wait for its CPU costs more than helpers gain.
  const std::size_t each = part.cpus / part.devices;
  const std::size_t most = each > lanes ? each - lanes : 0;
  plan.helpers = std::min(told, most);
  plan.helpers_reason = told <= most ? "as poller.workers says"
                                     : "poller.workers is " + std::to_string(told) + ", but of " +
                                           part.text + ", " + std::to_string(most) +
                                           (most == 1 ? " is" : " are") + " left beside " +
                                           counted(lanes, "poller");
}

void plan_driven_nic(const DeviceFacts& facts, const config::Poller& settings, const Part& part,
                     DevicePlan& plan) {
  const std::size_t lanes = choose_lanes(facts, part, plan);
  choose_mode(settings, part, lanes, plan);
  choose_copiers(settings, part, lanes, plan);
  plan.lanes.resize(lanes);
  plan.spin = spin_of(settings, part, lanes);
}

// --- CPUs ----------------------------------------------------------------------------------------

bool has(const std::vector<std::uint32_t>& cpus, std::uint32_t cpu) {
  return std::ranges::find(cpus, cpu) != cpus.end();
}

std::vector<std::uint32_t> common_cpus(std::vector<std::uint32_t> some,
                                       const std::vector<std::uint32_t>& others) {
  std::erase_if(some, [&](std::uint32_t cpu) { return !has(others, cpu); });
  return some;
}

// Each dedicated lane, counted over all devices, has a CPU of its own: one of the config's, or near
// the NIC.
void choose_cpus(const DeviceFacts& facts, const config::CpuShare& share,
                 const config::Poller& settings, DevicePlan& plan) {
  const auto node = share.nodes.find(facts.numa_node);
  const std::vector<std::uint32_t> near_nic = node == share.nodes.end()
                                                  ? std::vector<std::uint32_t>()
                                                  : common_cpus(node->second, share.allowed);
  const bool is_told = !settings.cpus.empty();
  const std::vector<std::uint32_t> candidates =
      is_told ? common_cpus(settings.cpus, share.allowed) : near_nic;
  if (candidates.empty()) return;  // Unknown topology: left to the scheduler.
  // From the end: low CPUs take interrupts, and other software picks them first.
  const auto nth_cpu = [&](std::size_t lane) {
    const std::size_t nth = lane % candidates.size();
    return is_told ? candidates[nth] : candidates[candidates.size() - 1 - nth];
  };
  const std::size_t lanes = plan.lanes.size();
  for (std::size_t i = 0; i < lanes; ++i)
    plan.lanes[i].cpu = static_cast<int>(nth_cpu(facts.index * lanes + i));
  // Helpers stay off the CPUs of all lanes, and each has a CPU of its own: a far one rather than a
  // shared near one.
  for (const auto* from : {&near_nic, &share.allowed}) {
    if (!plan.helper_cpus.empty() && plan.helper_cpus.size() >= plan.helpers) break;
    plan.helper_cpus = *from;
    for (std::size_t i = 0; i < facts.count * lanes; ++i) std::erase(plan.helper_cpus, nth_cpu(i));
  }
}

// "0-3,8".
std::string list_text(const std::vector<std::uint32_t>& cpus) {
  std::string text;
  for (std::size_t i = 0; i < cpus.size();) {
    std::size_t last = i;
    while (last + 1 < cpus.size() && cpus[last + 1] == cpus[last] + 1) ++last;
    text += (text.empty() ? "" : ",") + std::to_string(cpus[i]);
    if (last != i) text += "-" + std::to_string(cpus[last]);
    i = last + 1;
  }
  return text;
}

}  // namespace

DeviceFacts facts_of(const config::Fabric& fabric, std::size_t index) {
  const config::Nic& nic = fabric.nics[index];
  DeviceFacts facts;
  facts.is_embedded = nic.driver == config::NicDriver::kMemif;
  facts.index = index;
  facts.count = fabric.nics.size();
  facts.numa_node = nic.numa_node;
  facts.speed_mbps = nic.speed_mbps;
  facts.is_on_pci = config::is_dpdk_nic(nic.driver);
  facts.told_lanes = nic.queues;
  facts.most_lanes = most_lanes(nic);
  return facts;
}

DevicePlan plan_device(const DeviceFacts& facts, const config::CpuShare& share,
                       const config::Poller& settings) {
  DevicePlan plan;
  plan.allowed = share.allowed;
  plan.nccl_devices = facts.nccl_devices;
  plan.max_sleep = std::chrono::microseconds(settings.max_sleep_us);
  const Part part = part_of(facts, share);
  if (facts.is_kernels)
    plan_sockets(facts, settings, part, plan);
  else
    plan_driven_nic(facts, settings, part, plan);
  const std::size_t lanes = plan.lanes.size();
  for (std::size_t i = 0; i < lanes; ++i)
    plan.lanes[i].helpers = plan.helpers / lanes + (i < plan.helpers % lanes ? 1 : 0);
  if (plan.is_dedicated) choose_cpus(facts, share, settings, plan);
  return plan;
}

Placement place_threads(const DevicePlan& plan, const std::vector<std::uint32_t>& allowed_now) {
  Placement out;
  std::vector<std::uint32_t> within = common_cpus(plan.allowed, allowed_now);
  if (within.empty()) within = allowed_now;
  std::vector<std::uint32_t> lost;
  for (const Lane& lane : plan.lanes) {
    const auto cpu = static_cast<std::uint32_t>(lane.cpu);
    const bool is_pinned = lane.cpu >= 0 && has(within, cpu);
    if (lane.cpu >= 0 && !is_pinned) lost.push_back(cpu);
    out.lane_cpus.push_back(is_pinned ? std::vector<std::uint32_t>{cpu} : within);
  }
  out.helper_cpus = common_cpus(plan.helper_cpus, within);
  if (out.helper_cpus.empty()) out.helper_cpus = within;
  const std::size_t threads = plan.lanes.size() + plan.helpers;
  const bool is_short = within.size() < std::min(threads, plan.allowed.size());
  if (lost.empty() && !is_short) return out;
  out.warning = "the process may run on " + counted(allowed_now.size(), "CPU") + " (" +
                list_text(allowed_now) + ") now, and had " + counted(plan.allowed.size(), "CPU") +
                " (" + list_text(plan.allowed) + ") when it was planned: ";
  out.warning += lost.empty()
                     ? counted(threads, "thread") + " share them, which costs time"
                     : "threads planned for CPU " + list_text(lost) + " run on any of these";
  out.warning += "; set the mask before NCCL's init and leave it";
  return out;
}

std::string helpers_text(const DevicePlan& plan) {
  return (plan.helpers == 0 ? "no workers" : counted(plan.helpers, "worker")) + " (" +
         plan.helpers_reason + ")";
}

std::string sockets_text(const DevicePlan& plan) {
  const char* const mode = plan.is_dedicated ? "a thread of its own"
                           : plan.takes_over ? "in NCCL's threads, bulk in its own"
                                             : "in NCCL's threads";
  const std::size_t lanes = plan.lanes.size();
  const std::string helpers = plan.helpers == 0 ? "no workers" : counted(plan.helpers, "worker");
  const std::string threads = lanes == 1          ? helpers
                              : plan.helpers == 0 ? counted(lanes, "lane")
                                                  : counted(lanes, "lane") + " with " + helpers;
  return std::string(mode) + "; " + threads + " (" + plan.lanes_reason + "), " +
         counted(plan.flows, "flow");
}

std::string lanes_text(const DevicePlan& plan) {
  const std::size_t lanes = plan.lanes.size();
  const std::string count = counted(lanes, "lane");
  if (plan.lanes_reason.empty()) return count;
  return (lanes == 1 ? "" : "up to ") + count + " (" + plan.lanes_reason + ")";
}

std::string pollers_text(const DevicePlan& plan) {
  const std::size_t lanes = plan.lanes.size();
  const std::string reason = plan.lanes_reason.empty() ? "" : " (" + plan.lanes_reason + ")";
  std::string text = lanes > 1        ? counted(lanes, "lane") + reason + ", their pollers"
                     : reason.empty() ? "poller"
                                      : "1 lane" + reason + ", its poller";
  text += plan.is_dedicated ? " dedicated (" : " shared with NCCL's threads (";
  text += plan.mode_reason + ")";
  for (std::size_t i = 0; i < lanes && plan.lanes[i].cpu >= 0; ++i)
    text += (i == 0 ? " on CPU " : ", ") + std::to_string(plan.lanes[i].cpu);
  return text;
}

}  // namespace ztcp::plan
