// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/lane.h"

#include <chrono>
#include <utility>

#include "transport/link/process_limits.h"

namespace ztcp::ustack {
namespace {

EngineConfig with_events(EngineConfig config, msg::PathEvents& events) {
  config.path_events = &events;
  return config;
}

}  // namespace

Lane::Lane(TimePoint now, const std::string& name, std::unique_ptr<link::Link> link,
           const EngineConfig& engine, std::string carrier_advice, WorkerThreads::Options workers)
    : link_(std::move(link)),
      link_description_(link_->describe()),
      carrier_advice_(std::move(carrier_advice)),
      nic_log_(name, link_description_, deferred_log_),
      path_log_(name, deferred_log_),
      workers_(engine.copies.workers),
      worker_options_(std::move(workers)),
      engine_(with_events(engine, path_log_), &worker_threads_),
      looked_for_losses_(now) {}

void Lane::start() {
  if (engine_.copies() == nullptr) return;
  const Status started = worker_threads_.start(
      workers_, worker_options_,
      [copies = engine_.copies()](std::size_t worker) { return copies->work(worker); });
  if (!started)
    deferred_log_.add(log::Level::kWarn, [&] {
      return fmt::format(
          "{}: only {} of {} workers could be started ({}, error {}): the poller copies in their "
          "place; raise ulimit -u or pids.max of the job's cgroup",
          worker_options_.name, worker_threads_.count(), workers_, started.error().where,
          started.error().sys_errno);
    });
}

NicCounts Lane::counts() const {
  NicCounts counts = engine_.counts(*link_);
  counts.groups = groups_;
  return counts;
}

std::string Lane::summary() const {
  std::string text = ustack::summary(counts());
  if (const std::uint64_t count = path_log_.flows_redialled(); count != 0)
    text += fmt::format(", {} flows_redialled", count);
  return text;
}

std::string Lane::down_advice() const {
  // A link also stays down, without an error, when it exceeds a limit of this process.
  const std::string limits = link::advice_on_files();
  return "no carrier on " + link_description_ + ": " + (limits.empty() ? carrier_advice_ : limits);
}

// Checks the loss of the whole link. The line names the peer with the most retransmitted bytes.
void Lane::on_watch(TimePoint now) {
  constexpr Duration kInterval = std::chrono::minutes(1);
  // A network without faults retransmits less than one byte in 200. Short samples are ignored.
  constexpr std::uint64_t kOneOf = 200;
  constexpr std::uint64_t kLeastBytes = 4U << 20;
  const Duration span = now - looked_for_losses_;
  if (span < kInterval) return;
  looked_for_losses_ = now;
  const std::uint64_t all_sent = link_->counters().tx_bytes;
  const std::uint64_t all_repeated = engine_.stack().counters().tx_retransmitted_bytes;
  const std::uint64_t sent = all_sent - std::exchange(sent_before_, all_sent);
  const std::uint64_t repeated = all_repeated - std::exchange(repeated_before_, all_repeated);
  if (sent < kLeastBytes || repeated * kOneOf < sent) return;
  std::uint64_t most = 0;
  IpAddress worst;
  engine_.stack().for_each_connection([&](const tcp::ConnectionStatistics& connection) {
    if (connection.retransmitted_bytes < most) return;
    most = connection.retransmitted_bytes;
    worst = connection.remote.address;
  });
  path_log_.loss(now, worst, repeated, sent, span);
}

void Lane::on_link_state(LinkState state) {
  const LinkState before = state_.exchange(state, std::memory_order_relaxed);
  if (is_lost(state) && !is_lost(before)) nic_log_.link_lost(state);
}

}  // namespace ztcp::ustack
