// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// When the next segment may leave, so that a window spreads over its round trip instead of
// arriving at a switch as one burst. Owned by a Sender.
//
// Debt up to a slack is forgiven. For an algorithm with a window it is kSlack, and paths whose
// whole round trip is shorter are not paced at all; one with a rate is always paced, with an eighth
// of a round trip, and in pieces of no more than that.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <ratio>

#include "core/clock.h"

namespace ztcp::tcp {

class Pacer {
 public:
  static constexpr Duration kSlack = std::chrono::microseconds(128);

  // Contains a division, so it is called once per round trip or when the window fell.
  void set_rate(std::uint64_t bytes_per_second, Duration srtt) {
    slack_ = kSlack;
    most_bytes_ = UINT32_MAX;
    set_cost(srtt <= kSlack ? 0 : bytes_per_second, srtt);
  }
  // For an algorithm that is rate based.
  void set_exact_rate(std::uint64_t bytes_per_second, Duration srtt) {
    slack_ = std::clamp(srtt / 8, kLeastSlack, kSlack);
    const std::uint64_t slack_bytes =
        bytes_per_second * static_cast<std::uint64_t>(slack_.count()) / std::nano::den;
    most_bytes_ = static_cast<std::uint32_t>(std::min<std::uint64_t>(slack_bytes, UINT32_MAX));
    set_cost(bytes_per_second, srtt);
  }

  bool may_send(TimePoint now) const { return next_ <= now + slack_; }
  // Time at which may_send() turns true.
  TimePoint next_send() const { return next_ - slack_; }
  // Bytes that may leave at once, in one super-segment.
  std::uint32_t most_bytes() const { return most_bytes_; }

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
  static constexpr Duration kLeastSlack = std::chrono::microseconds(4);
  static constexpr unsigned kShift = 16;  // cost_: nanoseconds per byte in 1/65536.

  void set_cost(std::uint64_t bytes_per_second, Duration srtt) {
    if (bytes_per_second == 0) {
      cost_ = 0;
      return;
    }
    cost_ = (std::uint64_t{std::nano::den} << kShift) / bytes_per_second;
    credit_ = std::max(kLeastCredit, srtt);
  }

  std::uint64_t cost_ = 0;
  Duration slack_ = kSlack;
  std::uint32_t most_bytes_ = UINT32_MAX;
  Duration credit_ = kLeastCredit;
  TimePoint next_{};
  bool waiting_ = false;
};

}  // namespace ztcp::tcp
