// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/queue.h"

#include <utility>

#include "transport/link/process_limits.h"

namespace ztcp::ustack {

Queue::Queue(TimePoint now, const std::string& name, std::string carrier_advice,
             std::unique_ptr<link::Link> link, const EngineConfig& engine,
             WorkerThreads::Options workers)
    : link_(std::move(link)),
      link_description_(link_->describe()),
      carrier_advice_(std::move(carrier_advice)),
      nic_log_(name, link_description_, remarks_),
      workers_(engine.copies.workers),
      worker_options_(std::move(workers)),
      engine_(engine, &worker_threads_),
      turn_(now, *link_, engine_, clients_, *this) {}

void Queue::start() {
  if (engine_.copies() == nullptr) return;
  const Status started = worker_threads_.start(
      workers_, worker_options_,
      [copies = engine_.copies()](std::size_t worker) { return copies->work(worker); });
  if (!started)
    remarks_.add(log::Level::kWarn, [&] {
      return fmt::format(
          "{}: only {} of {} workers could be started ({}, error {}): the poller copies in their "
          "place; see ulimit -u and pids.max of the job's cgroup",
          worker_options_.name, worker_threads_.count(), workers_, started.error().where,
          started.error().sys_errno);
    });
}

NicCounts Queue::counts() const {
  NicCounts counts = turn_.counts();
  counts.groups = groups_;
  return counts;
}

std::string Queue::summary() const { return ustack::summary(counts()); }

std::string Queue::down_advice() const {
  // A link that ran into a limit of this process stays down without a word, too.
  const std::string limits = link::advice_on_files();
  return "no carrier on " + link_description_ + ": " + (limits.empty() ? carrier_advice_ : limits);
}

void Queue::on_link_state(link::LinkState state) {
  const link::LinkState before = state_.exchange(state, std::memory_order_relaxed);
  if (link::is_lost(state) && !link::is_lost(before)) nic_log_.link_lost(state);
}

}  // namespace ztcp::ustack
