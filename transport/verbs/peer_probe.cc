// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/peer_probe.h"

#include <algorithm>
#include <chrono>

namespace ztcp::verbs {
namespace {

using Health = RailState::Health;

constexpr Duration kProbeInterval = std::chrono::seconds(1);

// How long a NIC may wait for an answer: four times the configured time, since hardware rounds it
// up, within bounds. A timeout of 0 is infinite.
Duration answer_timeout(const Device& device) {
  constexpr Duration kLeast = std::chrono::minutes(10);
  constexpr Duration kMost = std::chrono::hours(1);
  constexpr Duration kUnit = std::chrono::nanoseconds(4096);
  if (device.timeout == 0) return kMost;
  return std::clamp(4 * (device.retries + 1) * (kUnit * (std::int64_t{1} << device.timeout)),
                    kLeast, kMost);
}

// A stream, a rail that drains and one that is about to come up have deadlines of their own.
bool has_deadline(const RailState& state) {
  return state.is_polled() || state.is_awaited || state.health == Health::kOffered ||
         state.health == Health::kProving;
}

// A write of no bytes reaches no memory, and is acknowledged as any other.
void send_probe(Traffic& traffic, RailState& state, TimePoint now) {
  WorkRequest nothing;
  nothing.is_signalled = true;
  nothing.remote = traffic.peer_facts().memory_address;
  nothing.rkey = traffic.peer_facts().on[traffic.index_of(state)].memory_rkey;
  nothing.id = QueuePairs::kProbeId;
  state.probe.is_out = traffic.post(state.first_queue_pair, nothing).has_value();
  state.probe.sent_at = now;
  state.probe.due = now + kProbeInterval;
}

}  // namespace

Status probe_peer(Traffic& traffic, TimePoint now) {
  bool may_answer = false;
  for (RailState& state : traffic.rails()) {
    if (state.health != Health::kUp || !state.queues) {
      may_answer |= has_deadline(state);
      continue;
    }
    const RailState::Probe& probe = state.probe;
    may_answer |= !probe.is_out || now - probe.sent_at < answer_timeout(state.rail->device);
    if (!probe.is_out && now >= probe.due) send_probe(traffic, state, now);
  }
  return may_answer ? Status() : fail(Errc::kTimedOut, "neither TCP nor the peer's NIC answers");
}

}  // namespace ztcp::verbs
