// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// When the next segment may leave, so that a window spreads over its round trip instead of
// arriving at a switch as one burst. Owned by a Sender.
//
// Debt up to kSlack is forgiven: paths whose whole round trip is shorter are not paced at all.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "core/clock.h"

namespace ztcp::tcp {

class Pacer {
 public:
  static constexpr Duration kSlack = std::chrono::microseconds(128);

  // Contains a division, so it is called once per round trip or when the window fell. `percent`: of
  // the window, per round trip.
  void set_rate(std::uint32_t window_bytes, Duration srtt, std::uint32_t percent) {
    if (srtt <= kSlack || window_bytes == 0) {
      cost_ = 0;
      return;
    }
    const std::uint64_t per_trip = std::uint64_t{window_bytes} * percent / 100;
    cost_ = (static_cast<std::uint64_t>(srtt.count()) << kShift) / per_trip;
    credit_ = std::max(kLeastCredit, srtt);
  }

  bool may_send(TimePoint now) const { return next_ <= now + kSlack; }
  // Time at which may_send() turns true.
  TimePoint next_send() const { return next_ - kSlack; }

  void on_sent(TimePoint now, std::uint32_t bytes) {
    if (cost_ == 0) return;
    const TimePoint from = waiting_ ? now - credit_ : now;
    next_ = std::max(next_, from) + Duration(static_cast<Duration::rep>((bytes * cost_) >> kShift));
  }

  // The turn ended with data that only pacing holds back. A poller that then comes late gets the
  // missed time as credit, up to a round trip: the round trip includes the delay of a starved
  // poller, and a sender without pacing would have sent a window by then. An idle sender gets none.
  void set_waiting(bool waiting) { waiting_ = waiting; }
  bool is_waiting() const { return waiting_; }

 private:
  static constexpr Duration kLeastCredit = std::chrono::milliseconds(5);
  static constexpr unsigned kShift = 16;  // cost_: nanoseconds per byte in 1/65536.
  std::uint64_t cost_ = 0;
  Duration credit_ = kLeastCredit;
  TimePoint next_{};
  bool waiting_ = false;
};

}  // namespace ztcp::tcp
