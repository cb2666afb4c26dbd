// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Retransmission timeout and minimum round trip from samples (RFC 6298). Owned by a Sender.
//
// It differs from the RFC in its floor of 1 s (section 2.4), a thousand round trips here: the
// caller sets one that fits its peers and its own poller. As in Linux the floor replaces the RFC's
// clock granularity and is added to the round trip: on a steady path of 20 ms the variance falls to
// nothing, and a timeout of 20 ms would treat each answer as late.
#pragma once

#include <algorithm>
#include <chrono>

#include "core/clock.h"

namespace ztcp::tcp {

class RttEstimator {
 public:
  struct Limits {
    Duration initial_rto;
    Duration min_rto;
    Duration max_rto;
  };
  // How long a minimum is kept: a path may change under a long connection (RFC 8985 section 6.2
  // step 1 leaves the choice to us).
  static constexpr Duration kMinRttWindow = std::chrono::seconds(10);

  explicit RttEstimator(const Limits& limits) : limits_(limits) {}

  void on_sample(TimePoint now, Duration rtt) {
    if (rtt <= Duration::zero()) rtt = Duration(1);
    if (srtt_ == Duration::zero()) {  // RFC 6298 (2.2)
      srtt_ = rtt;
      rttvar_ = rtt / 2;
    } else {  // RFC 6298 (2.3): the variance uses the old srtt.
      rttvar_ = (3 * rttvar_ + std::chrono::abs(srtt_ - rtt)) / 4;
      srtt_ = (7 * srtt_ + rtt) / 8;
    }
    backoff_ = 0;
    update_min(now, rtt);
  }

  void set_min_rto(Duration min_rto) { limits_.min_rto = min_rto; }

  bool has_sample() const { return srtt_ != Duration::zero(); }
  Duration srtt() const { return srtt_; }
  Duration rttvar() const { return rttvar_; }
  // Minimum of the last one to two windows. Only if has_sample().
  Duration min_rtt() const { return std::min(min_old_, min_new_); }

  // RFC 6298 (2.3) to (2.5). `floor`: required by the poller's own gaps.
  Duration first_rto(Duration floor = Duration::zero()) const {
    const Duration base =
        has_sample() ? srtt_ + std::max(4 * rttvar_, limits_.min_rto) : limits_.initial_rto;
    const Duration low = std::max(limits_.min_rto, floor);
    return std::clamp(base, low, std::max(limits_.max_rto, low));
  }
  // With (5.5), the backoff.
  Duration rto(Duration floor = Duration::zero()) const {
    const Duration first = first_rto(floor);
    if (backoff_ == 0) [[likely]]
      return first;
    return std::min<Duration>(first * (1LL << backoff_), std::max(limits_.max_rto, first));
  }

  void back_off() { backoff_ = std::min(backoff_ + 1, kMaxBackoff); }
  void forget_backoff() { backoff_ = 0; }
  int backoff() const { return backoff_; }

 private:
  static constexpr int kMaxBackoff = 16;

  void update_min(TimePoint now, Duration rtt) {
    if (now - window_start_ > kMinRttWindow) {
      min_old_ = min_new_ == kUnknown ? rtt : min_new_;
      min_new_ = rtt;
      window_start_ = now;
    } else if (rtt < min_new_) {
      min_new_ = rtt;
      min_old_ = std::min(min_old_, rtt);
    }
  }

  static constexpr Duration kUnknown = Duration::max();

  Limits limits_;
  Duration srtt_{};
  Duration rttvar_{};
  Duration min_old_ = kUnknown;
  Duration min_new_ = kUnknown;
  TimePoint window_start_{};
  int backoff_ = 0;
};

}  // namespace ztcp::tcp
