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
      checked_for_losses_(now) {}

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
  counts.redials = path_log_.flows_redialled();
  counts.moves = path_log_.flows_moved();
  counts.groups = groups_;
  return counts;
}

std::string Lane::summary() const { return ustack::summary(counts()); }

void Lane::read_counters(stats::CounterValues& to) const {
  const NicCounts from = counts();
  stats::add_to(to, msg::kStrangerCounters, from.acceptor.strangers);
  stats::add_to(to, nic_counter::kUsual, from);
  stats::add_to(to, nic_counter::kUnusual, from);
}

std::string Lane::down_advice() const {
  // A link also stays down, without an error, when it exceeds a limit of this process.
  const std::string limits = link::advice_on_files();
  return "no carrier on " + link_description_ + ": " + (limits.empty() ? carrier_advice_ : limits);
}

std::string Lane::advice_for(Errc code) const {
  if (code != Errc::kNoRoute || !address_has_ended()) return {};
  return "the lifetime of this NIC's address is over: look at the prefixes that the network's "
         "routers advertise, and start the job anew";
}

// Once a second, so that a port that only negotiates again is no news.
void Lane::check_carrier(TimePoint now) {
  if (!logs_carrier_) return;
  if (state() == LinkState::kUp) {
    if (std::exchange(has_logged_down_, false))
      path_log_.link_up(now, link_description_ + " has a carrier again");
    return;
  }
  if (state() != LinkState::kDown || has_logged_down_) return;
  // Before the first frame the NIC may still wait for its carrier, and connects say so.
  if (link_->counters().rx_frames == 0) return;
  if (clients_.is_empty()) return;
  has_logged_down_ = true;
  path_log_.link_down(now, down_advice());
}

// Checks the loss of the whole link. The line names the peer with the most retransmitted bytes.
void Lane::on_watch(TimePoint now) {
  check_carrier(now);
  constexpr Duration kInterval = std::chrono::minutes(1);
  // A network without faults retransmits less than one byte in 200. Short samples are ignored.
  constexpr std::uint64_t kOneOf = 200;
  constexpr std::uint64_t kLeastBytes = 4U << 20;
  const Duration span = now - checked_for_losses_;
  if (span < kInterval) return;
  checked_for_losses_ = now;
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
