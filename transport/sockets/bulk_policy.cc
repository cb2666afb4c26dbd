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
// One thread can keep so many in work; where NCCL is shown several devices, and opens more
// channels, more queues with fewer workers each are better. Two devices are no gain: between 32 KiB
// and 2 MiB they are slower, beyond that little faster (bench/results/nccl-h200-sockets.md).
constexpr std::size_t kWorkersOfQueue = 4;
constexpr std::size_t kWorkersOfQueueWithViews = 2;
constexpr std::size_t kAutoViews = 4;
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

// Of so many threads, as many as are left beside one of a queue for each `of_queue`.
std::size_t workers_among(std::size_t threads, std::size_t of_queue) {
  return threads - (threads + of_queue) / (of_queue + 1);
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

  const std::size_t spare = ours > kOtherThreads ? (ours - kOtherThreads) / place.devices : 0;
  const std::size_t useful =
      place.speed_mbps == 0 ? kMostAutoWorkers : (place.speed_mbps + kMbpsEach - 1) / kMbpsEach;
  const bool is_told = fabric.poller.workers >= 0;
  const bool is_dedicated = fabric.poller.mode == config::PollerMode::kDedicated;
  const auto workers = [&](std::size_t of_queue) -> std::size_t {
    if (!is_told) return std::min({workers_among(spare, of_queue), useful, kMostAutoWorkers});
    // On a single CPU a worker only waits for who gives to it.
    return usable > 1 ? static_cast<std::size_t>(fabric.poller.workers) : 0;
  };

  BulkPolicy policy;
  policy.views = place.views;
  if (place.views == 0)
    policy.views =
        !is_dedicated && workers(kWorkersOfQueueWithViews) >= kMostAutoWorkers ? kAutoViews : 1;
  const std::size_t of_queue = policy.views > 1 ? kWorkersOfQueueWithViews : kWorkersOfQueue;
  policy.workers = workers(of_queue);
  if (is_told) {
    policy.reason = usable > 1 || fabric.poller.workers == 0
                        ? "as poller.workers says"
                        : fmt::format("poller.workers is {}, but the process may use one CPU",
                                      fabric.poller.workers);
  } else {
    policy.reason = cpus_text(ours);
    if (is_shared)
      policy.reason +=
          fmt::format(" for each of {} ranks ({})", place.ranks.count, place.ranks.source);
    if (place.speed_mbps != 0 && policy.workers == useful)
      policy.reason += fmt::format(", {} Gb/s", place.speed_mbps / 1000);
  }
  // Whoever wants a thread of its own for the turns has that one.
  if (!is_dedicated) {
    policy.queues = std::max<std::size_t>(1, policy.workers / of_queue);
    policy.takes_over = is_told ? policy.workers != 0 : spare != 0;
  }
  if (fabric.messages.flows != 0) {
    policy.flows = fabric.messages.flows;
  } else if (policy.workers != 0) {
    const auto movers =
        static_cast<std::uint32_t>(policy.views > 1 ? workers_of(policy, 0) : policy.workers + 1);
    policy.flows = 1 + std::clamp<std::uint32_t>(movers, 2, kMostAutoBulkFlows);
  }
  return policy;
}

}  // namespace ztcp::sockets
