// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Faults of this host's NICs: links, dropped and damaged frames.
#include <fmt/format.h>

#include "tools/ztcp_stat/view/units.h"
#include "tools/ztcp_stat/why/case.h"

namespace ztcp::stat {
namespace {

using stats::Counter;

constexpr std::uint64_t kFewFrames = 10;  // Damaged ones in a window: noise of a long cable.

struct DropRule {
  Counter counter;
  Rule rule;
  const char* text;     // Behind the number of frames.
  const char* command;  // {}: the NIC.
};
constexpr DropRule kDropRules[] = {
    {Counter::kRxNoMemory, Rule::kDrops,
     "frames dropped because the pool of frames was empty: give the device more hugepages",
     "man 5 ztcp.conf  # hugepages"},
    {Counter::kTxDropped, Rule::kDrops, "frames dropped because the link was down",
     "dmesg | grep -i {}"},
    {Counter::kNicRxMissed, Rule::kDrops,
     "frames dropped by its NIC because the receive ring was full: the thread that polls it runs "
     "late or can't keep up",
     "ztcp_stat  # LATE; more CPUs for this job, or queues = 2 for the NIC"},
    {Counter::kNicTxErrors, Rule::kDrops, "frames that its NIC could not send",
     "dmesg | grep -i {}"},
};

std::string down_command(stats::Carrier carrier, const std::string& nic) {
  switch (carrier) {
    case stats::Carrier::kUserspaceTcp:
      return "ztcp_setup --check";
    case stats::Carrier::kKernelSockets:
      return fmt::format("ip link show {}", nic);
    case stats::Carrier::kRdma:
      return "rdma link";
  }
  return "";
}

std::string nic_of(const stats::Device& device) {
  return device.nic.empty() ? device.name : device.nic;
}

}  // namespace

void find_link_faults(const Case& one, Findings& findings) {
  if (!one.is_running()) return;
  for (const stats::Device& device : one.now().devices) {
    const std::string nic = nic_of(device);
    if (device.link == stats::LinkStatus::kLost)
      findings.push_back(
          {Severity::kSevere, Rule::kLinkLost, device_name(one, device),
           fmt::format("has lost its NIC {}: it was removed, or its driver was reset", nic),
           "dmesg | tail -50", 0});
    if (device.link == stats::LinkStatus::kDown)
      findings.push_back({Severity::kSevere, Rule::kLinkDown, device_name(one, device),
                          fmt::format("has no carrier at its NIC {}: cable, switch port or "
                                      "interface is down",
                                      nic),
                          down_command(device.carrier, nic), 0});
  }
}

void find_frame_faults(const Case& one, Findings& findings) {
  for (const stats::Device& device : one.now().devices) {
    const std::uint64_t received = one.window.count(device, Counter::kRxFrames);
    for (const DropRule& drops : kDropRules) {
      const std::uint64_t frames = one.window.count(device, drops.counter);
      if (frames == 0) continue;
      const double share =
          static_cast<double>(frames) / static_cast<double>(std::max(received + frames, frames));
      findings.push_back(
          {share >= 0.01 ? Severity::kSevere : Severity::kWarning, drops.rule,
           device_name(one, device),
           fmt::format("has {} {} ({} of those received) in the last {}", frames, drops.text,
                       share_text(share), seconds_text(one.window.seconds())),
           fmt::format(fmt::runtime(drops.command), nic_of(device)), share});
    }
    const std::uint64_t damaged = one.window.count(device, Counter::kBadChecksums) +
                                  one.window.count(device, Counter::kMalformedFrames) +
                                  one.window.count(device, Counter::kNicRxErrors);
    if (damaged >= kFewFrames)
      findings.push_back({Severity::kWarning, Rule::kDamaged, device_name(one, device),
                          fmt::format("received {} frames with a wrong checksum or format in the "
                                      "last {}: a cable, NIC or switch damages frames",
                                      damaged, seconds_text(one.window.seconds())),
                          "ztcp_setup --check", static_cast<double>(damaged)});
  }
}

}  // namespace ztcp::stat
