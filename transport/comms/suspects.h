// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Peers whose process has ended, according to the death watch, until their NIC confirms or refutes
// it: the NIC of a living process answers a probe at once. Time and probes are arguments. Belongs
// to one thread.
#pragma once

#include <algorithm>
#include <chrono>
#include <utility>
#include <vector>

#include "core/address.h"
#include "core/clock.h"
#include "transport/watch/peer.h"

namespace ztcp::comms {

class Suspects {
 public:
  // A NIC that has answered none of these, one per probe interval, is dead.
  static constexpr int kProbes = 5;
  // Frames that were in flight when the process died are no sign of life.
  static constexpr Duration kAfterglow = std::chrono::milliseconds(50);
  // If check() was not called for this long, the silence may be due to this thread's own stall, so
  // a last probe is sent again.
  static constexpr Duration kLongestSleep = std::chrono::milliseconds(50);

  explicit Suspects(Duration probe_interval) : probe_interval_(probe_interval) {}

  bool empty() const { return suspects_.empty(); }

  void add(TimePoint now, const watch::Peer& peer) {
    const bool is_known = std::any_of(suspects_.begin(), suspects_.end(),
                                      [&](const Suspect& s) { return s.peer.nic == peer.nic; });
    if (!is_known) suspects_.push_back({peer, now, now});
    if (suspects_.size() == 1) checked_ = now;
  }

  // To be called about every millisecond. probe(nic) asks that NIC for an answer, heard(nic)
  // returns when it last answered, dead(peer) is called for each peer that is found dead.
  template <class Probe, class Heard, class Dead>
  void check(TimePoint now, Probe&& probe, Heard&& heard, Dead&& dead) {
    const bool has_slept = now - checked_ > kLongestSleep;
    checked_ = now;
    std::erase_if(suspects_, [&](Suspect& s) {
      if (has_slept) {
        s.probes = std::min(s.probes, kProbes - 1);
        s.next = now;
      }
      if (now < s.next) return false;
      if (heard(s.peer.nic) > s.since + kAfterglow) return true;  // It lives.
      if (s.probes == kProbes) {
        dead(std::as_const(s.peer));
        return true;
      }
      ++s.probes;
      s.next = now + probe_interval_;
      probe(s.peer.nic);
      return false;
    });
  }

 private:
  struct Suspect {
    watch::Peer peer;
    TimePoint since;
    TimePoint next;
    int probes = 0;
  };

  const Duration probe_interval_;
  std::vector<Suspect> suspects_;
  TimePoint checked_{};
};

}  // namespace ztcp::comms
