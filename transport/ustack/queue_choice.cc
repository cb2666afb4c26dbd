// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/queue_choice.h"

#include <algorithm>

#include <fmt/format.h>

namespace ztcp::ustack {

QueueChoice choose_queues(const config::Nic& nic, const comms::CpuView& cpus, std::size_t nics) {
  // Beside a poller for each queue: NCCL's progress thread, and one for the training process.
  constexpr std::size_t kOtherThreads = 2;
  const std::size_t usable =
      cpus.quota != 0 ? std::min(cpus.quota, cpus.allowed.size()) : cpus.allowed.size();
  if (nic.queues != config::kAutoQueues) {
    QueueChoice choice{
        .count = static_cast<std::uint16_t>(nic.queues), .reason = {}, .warning = {}};
    if (nic.driver == config::NicDriver::kPci && nic.queues > usable)
      choice.warning = fmt::format(
          "queues = {} in the config, and this process may run on {} CPUs, which they share: that "
          "costs time; write queues = {}, or queues = \"auto\"",
          nic.queues, usable, std::max<std::size_t>(usable, 1));
    return choice;
  }
  // Whoever has fewer CPUs than the machine was given them for itself.
  const std::size_t sharers =
      cpus.allowed.size() < cpus.online ? 1 : std::max<std::size_t>(nics, 1);
  const std::uint32_t wanted = config::most_queues(nic);
  const std::size_t enough =
      std::max<std::size_t>(usable / sharers, kOtherThreads + 1) - kOtherThreads;
  const auto count = static_cast<std::uint16_t>(std::min<std::size_t>(wanted, enough));
  const std::string why =
      fmt::format("auto: {} for {}, and {} CPUs{} suffice for {}", wanted,
                  nic.speed_mbps == 0 ? "an unknown speed" : fmt::format("{} Mb/s", nic.speed_mbps),
                  usable, sharers == 1 ? "" : fmt::format(" for {} NICs", sharers), enough);
  return {.count = count, .reason = why, .warning = {}};
}

std::string pollers_text(std::size_t queues, const QueueChoice& choice) {
  std::string reason = choice.reason;
  if (queues < choice.count) reason += fmt::format(", of which the NIC has {}", queues);
  if (!reason.empty()) reason = fmt::format(" ({})", reason);
  return queues == 1 ? (reason.empty() ? "poller" : fmt::format("1 queue{}, its poller", reason))
                     : fmt::format("{} queues{}, their pollers", queues, reason);
}

}  // namespace ztcp::ustack
