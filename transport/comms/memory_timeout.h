// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How long deregister_memory() waits for bytes in flight. An abort closes many connections one
// after the other, and some or all of their peers are gone. So after a wait that timed out, the
// same peer is not waited for again, and others share the rest of the timeout. Any thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <map>
#include <mutex>

#include "core/address.h"
#include "core/clock.h"

namespace ztcp::comms {

class MemoryTimeout {
 public:
  using Clock = std::chrono::steady_clock;
  // Granted to every other peer, however much was spent: a living peer needs about this long to
  // acknowledge bytes that the NIC still has to send.
  static constexpr Duration kLeast = std::chrono::milliseconds(20);

  void set(Duration full) { full_ = full; }
  Duration for_peer(IpAddress peer) const {
    const std::lock_guard lock(mutex_);
    const auto found = gone_.find(peer);
    if (found != gone_.end() && is_recent(found->second)) return Duration::zero();
    const Duration left = is_recent(last_vain_) ? full_ - lost_ : full_;
    return std::max(left, std::min(full_, kLeast));
  }
  // A wait for `peer` timed out after `waited`.
  void ran_out(IpAddress peer, Duration waited) {
    const std::lock_guard lock(mutex_);
    lost_ = is_recent(last_vain_) ? lost_ + waited : waited;
    gone_[peer] = last_vain_ = Clock::now();
  }

 private:
  static constexpr Duration kRecent = std::chrono::seconds(10);
  static bool is_recent(Clock::time_point when) {
    return when != Clock::time_point{} && Clock::now() - when < kRecent;
  }

  Duration full_{};
  mutable std::mutex mutex_;
  std::map<IpAddress, Clock::time_point> gone_;
  Clock::time_point last_vain_{};
  Duration lost_{};  // Sum of the waits that timed out, each within kRecent of the one before.
};

}  // namespace ztcp::comms
