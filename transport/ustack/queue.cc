// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/queue.h"

#include <utility>

#include <fmt/format.h>

#include "transport/link/process_limits.h"

namespace ztcp::ustack {

Queue::Queue(TimePoint now, const std::string& name, std::string carrier_advice,
             std::unique_ptr<link::Link> link, const EngineConfig& engine)
    : link_(std::move(link)),
      link_description_(link_->describe()),
      carrier_advice_(std::move(carrier_advice)),
      nic_log_(name, link_description_, remarks_),
      engine_(engine),
      turn_(now, *link_, engine_, clients_, *this) {}

NicCounts Queue::counts() const {
  NicCounts counts = turn_.counts();
  counts.groups = groups_;
  return counts;
}

std::string Queue::summary() const { return ustack::summary(counts()); }

std::string Queue::losses() const {
  const tcp::Counters& tcp = engine_.tcp_counters();
  return fmt::format("the NIC retransmitted {} bytes and timed out {} times",
                     tcp.tx_retransmitted_bytes, tcp.rto_fired);
}

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
