// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/sockets/bulk_policy.h"

#include <algorithm>
#include <array>
#include <cstdlib>

#include <fmt/format.h>

#include "config/machine/text.h"
#include "transport/msg/session.h"
#include "transport/sockets/bulk_calls.h"

namespace ztcp::sockets {
namespace {

// Beside ours: NCCL's progress thread, and one for the training.
constexpr std::size_t kOtherThreads = 2;
constexpr std::size_t kMostAutoWorkers = 8;
// One thread can keep so many in work.
constexpr std::size_t kWorkersOfQueue = 4;
// What one thread carries each way, or less.
constexpr std::uint32_t kMbpsEach = 12'500;
constexpr std::uint32_t kMostAutoBulkFlows = 4;

// Queues of a device that NCCL is shown several times: more than the most are no gain, and numbers
// between these were not measured (bench/results/nccl-h200-sockets.md).
constexpr std::array<std::size_t, 5> kQueues = {12, 8, 6, 4, 2};
// With more devices NCCL opens more channels than few threads are worth. Fewer than the least were
// measured before there was a tuner: slower than one below 2 MiB, and little faster above.
constexpr std::size_t kQueuesOfMostViews = 6;
constexpr std::size_t kMostAutoViews = 8;
constexpr std::size_t kLeastAutoViews = 4;

// As many of them as there are threads for; 1: too few for several.
std::size_t queues_among(std::size_t threads) {
  const auto fits = std::ranges::find_if(kQueues, [&](std::size_t n) { return n <= threads; });
  return fits == kQueues.end() ? 1 : *fits;
}

// Of all interfaces together no more than of one.
std::size_t views_for(std::size_t queues, std::size_t devices) {
  if (queues == 1) return 1;
  const std::size_t all = queues >= kQueuesOfMostViews ? kMostAutoViews : kLeastAutoViews;
  return all / devices >= kLeastAutoViews ? all / devices : 1;
}

// Of so many threads, as many as are left beside one of a queue for each kWorkersOfQueue.
std::size_t workers_among(std::size_t threads) {
  return threads - (threads + kWorkersOfQueue) / (kWorkersOfQueue + 1);
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
    if (const char* const text = std::getenv(name)) {
      // "8", or SLURM's "8(x2)".
      if (const std::size_t told = config::leading_number(text); told != 0) return {told, name};
    }
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
      place.speed_mbps == 0 ? spare : (place.speed_mbps + kMbpsEach - 1) / kMbpsEach;
  const bool is_told = fabric.poller.workers >= 0;
  const bool is_dedicated = fabric.poller.mode == config::PollerMode::kDedicated;
  const std::size_t many = queues_among(std::min(spare, useful));

  BulkPolicy policy;
  policy.views = place.views;
  // Without the tuner NCCL would spread every collective over all of their channels.
  if (place.views == 0)
    policy.views =
        is_told || is_dedicated || !fabric.tunes_channels ? 1 : views_for(many, place.devices);
  const bool has_workers = policy.views == 1 || is_told || is_dedicated;
  if (has_workers && !is_told)
    policy.workers = std::min({workers_among(spare), useful, kMostAutoWorkers});
  else if (is_told && usable > 1)  // On a single CPU a worker only waits for who gives to it.
    policy.workers = static_cast<std::size_t>(fabric.poller.workers);
  // Whoever wants a thread of its own for the turns has that one.
  if (!is_dedicated) {
    policy.queues = has_workers ? std::max<std::size_t>(1, policy.workers / kWorkersOfQueue) : many;
    policy.takes_over = is_told ? policy.workers != 0 : spare != 0;
  }

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
    const bool is_speeds = has_workers ? policy.workers == useful : many < queues_among(spare);
    if (place.speed_mbps != 0 && is_speeds)
      policy.reason += fmt::format(", {} Gb/s", place.speed_mbps / 1000);
  }
  if (fabric.messages.flows != 0) {
    policy.flows = fabric.messages.flows;
  } else if (policy.workers != 0) {
    const auto movers = static_cast<std::uint32_t>(policy.workers + 1);
    policy.flows = 1 + std::clamp<std::uint32_t>(movers, 2, kMostAutoBulkFlows);
  }
  return policy;
}

}  // namespace ztcp::sockets
