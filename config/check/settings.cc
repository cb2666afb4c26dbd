// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Warns of valid settings that are seldom intended.
#include <algorithm>

#include <fmt/format.h>

#include "config/check/checklist.h"
#include "config/machine/readings.h"

namespace ztcp::config {
namespace {

constexpr std::uint32_t kSlowestMbps = 1000;

// The speed that the NIC reports; 0: unknown.
std::uint32_t told_mbps(Checklist& list, const Nic& nic) {
  if (nic.driver == NicDriver::kVerbs) return list.rdma_port(nic).speed_mbps;
  if (nic.driver != NicDriver::kSocket && !is_past_kernel(nic.driver)) return 0;
  const auto told = read_number(list.machine, "/sys/class/net/" + nic.interface + "/speed");
  return told && *told > 0 ? static_cast<std::uint32_t>(*told) : 0;
}

}  // namespace

void check_speed_units(Checklist& list) {
  for (const Nic& nic : list.fabric.nics) {
    const bool is_real = nic.driver != NicDriver::kMemif && nic.driver != NicDriver::kTap;
    if (!is_real || nic.speed_mbps == 0 || nic.speed_mbps >= kSlowestMbps ||
        told_mbps(list, nic) == nic.speed_mbps)
      continue;
    list.warning("speed", nic.name,
                 fmt::format("speed_mbps = {} in the config is {} Mb/s, slower than the NIC of any "
                             "GPU host; NCCL takes the number of its channels from it",
                             nic.speed_mbps, nic.speed_mbps),
                 fmt::format("for {} Gb/s write speed_mbps = {} into {}", nic.speed_mbps,
                             std::uint64_t{nic.speed_mbps} * 1000, list.fabric.path));
  }
}

void check_watch_interface(Checklist& list) {
  const std::string& name = list.fabric.messages.watch_interface;
  if (name == "auto" || name == "off" || exists(list.machine, "/sys/class/net/" + name) ||
      std::any_of(list.addresses.begin(), list.addresses.end(),
                  [&](const LocalAddress& one) { return one.interface == name; }))
    return;
  list.warning(
      "watch", "messages.watch_interface",
      fmt::format("there is no interface {}: the death of a peer's process is noticed by its "
                  "silence alone",
                  name),
      fmt::format("ip -brief link shows the interfaces; write one of them, or auto, into "
                  "{}",
                  list.fabric.path));
}

void check_timeouts(Checklist& list) {
  const Tcp& tcp = list.fabric.tcp;
  if (tcp.user_timeout_ms >= tcp.keepalive_idle_ms) return;
  list.warning(
      "timeouts", "tcp.user_timeout_ms",
      fmt::format("{} ms, below tcp.keepalive_idle_ms = {}: a peer that is busy for this long "
                  "counts as dead",
                  tcp.user_timeout_ms, tcp.keepalive_idle_ms),
      fmt::format("write user_timeout_ms = {} or more into {}, or a smaller "
                  "keepalive_idle_ms",
                  tcp.keepalive_idle_ms + 3 * tcp.keepalive_interval_ms, list.fabric.path));
}

}  // namespace ztcp::config
