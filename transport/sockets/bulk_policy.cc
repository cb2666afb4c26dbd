// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/sockets/bulk_policy.h"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <string_view>

#include <fmt/format.h>

#include "transport/msg/session.h"
#include "transport/sockets/bulk_calls.h"

namespace ztcp::sockets {
namespace {

// Beside workers: NCCL's progress thread, and one for the training.
constexpr std::size_t kOtherThreads = 2;
constexpr std::size_t kMostAutoWorkers = 8;
// One thread can keep so many in work. More queues, with fewer workers each, are better only where
// NCCL is told to open many channels.
constexpr std::size_t kWorkersOfQueue = 4;
// What one thread carries each way, or less.
constexpr std::uint32_t kMbpsEach = 12'500;
constexpr std::uint32_t kMostAutoBulkFlows = 4;

// "8", or SLURM's "8(x2)"; 0: nothing of the kind.
std::size_t leading_number(const char* text) {
  if (text == nullptr) return 0;
  const std::string_view all = text;
  std::size_t out = 0;
  const auto number = std::from_chars(all.data(), all.data() + all.size(), out);
  return number.ec == std::errc{} ? out : 0;
}

std::string cpus_text(std::size_t cpus) {
  return fmt::format("{} CPU{}", cpus, cpus == 1 ? "" : "s");
}

}  // namespace

LocalRanks local_ranks(config::Machine& machine) {
  for (const char* name : {"LOCAL_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS",
                           "SLURM_STEP_TASKS_PER_NODE"})
    // Nobody else changes the environment while NCCL sets itself up.
    // NOLINTNEXTLINE(concurrency-mt-unsafe)
    if (const std::size_t told = leading_number(std::getenv(name)); told != 0) return {told, name};
  const std::size_t gpus = machine.list("/proc/driver/nvidia/gpus").size();
  if (gpus != 0) return {gpus, fmt::format("{} GPU{}", gpus, gpus == 1 ? "" : "s")};
  return {};
}

BulkPolicy choose_bulk(const config::Fabric& fabric, const comms::CpuView& cpus,
                       const BulkPlace& place) {
  const std::size_t usable =
      cpus.quota != 0 ? std::min(cpus.quota, cpus.allowed.size()) : cpus.allowed.size();
  // A mask is this rank's own where all ranks could have one like it.
  const bool is_shared = usable * place.ranks.count > cpus.online;
  const std::size_t ours =
      is_shared ? std::max<std::size_t>(1, usable / place.ranks.count) : usable;

  BulkPolicy policy;
  std::size_t threads = 0;  // Of queues.
  const std::size_t spare = ours > kOtherThreads ? (ours - kOtherThreads) / place.devices : 0;
  if (fabric.poller.workers >= 0) {
    // On a single CPU a worker only waits for who gives to it.
    policy.workers = usable > 1 ? static_cast<std::size_t>(fabric.poller.workers) : 0;
    threads = policy.workers;
    policy.reason = usable > 1 || fabric.poller.workers == 0
                        ? "as poller.workers says"
                        : fmt::format("poller.workers is {}, but the process may use one CPU",
                                      fabric.poller.workers);
  } else {
    const std::size_t useful =
        place.speed_mbps == 0 ? kMostAutoWorkers : (place.speed_mbps + kMbpsEach - 1) / kMbpsEach;
    // Beside a thread of a queue for every four.
    threads = (spare + kWorkersOfQueue) / (kWorkersOfQueue + 1);
    policy.workers = std::min({spare - threads, useful, kMostAutoWorkers});
    policy.reason = cpus_text(ours);
    if (is_shared)
      policy.reason +=
          fmt::format(" for each of {} ranks ({})", place.ranks.count, place.ranks.source);
    if (place.speed_mbps != 0 && policy.workers == useful)
      policy.reason += fmt::format(", {} Gb/s", place.speed_mbps / 1000);
  }
  // Whoever wants a thread of its own for the turns has that one.
  if (fabric.poller.mode != config::PollerMode::kDedicated) {
    policy.queues = std::max<std::size_t>(1, policy.workers / kWorkersOfQueue);
    policy.takes_over = threads != 0;
  }
  if (fabric.messages.flows != 0) {
    policy.flows = fabric.messages.flows;
  } else if (policy.workers != 0) {
    const auto movers = static_cast<std::uint32_t>(policy.workers) + 1;
    policy.flows = 1 + std::clamp<std::uint32_t>(movers, 2, kMostAutoBulkFlows);
  }
  return policy;
}

}  // namespace ztcp::sockets
