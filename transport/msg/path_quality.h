// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The quality of a flow's path, as its TCP saw it from one check of its session to the next. A path
// that is bad at several checks in a row, while other flows to the same peer have good ones, is
// worth leaving.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/stream.h"
#include "transport/msg/session.h"

namespace ztcp::msg {

class PathQuality {
 public:
  enum class Verdict : std::uint8_t { kUnknown, kGood, kBad };

  Verdict check(const StreamHealth& now) {
    constexpr std::uint64_t kEnoughBytes = 64U << 10;
    last_ = {.timeouts = now.timeouts - seen_.timeouts,
             .marked_bytes = now.marked_bytes - seen_.marked_bytes,
             .delivered_bytes = now.delivered_bytes - seen_.delivered_bytes};
    const std::uint64_t repeated = now.retransmitted_bytes - seen_.retransmitted_bytes;
    seen_ = now;
    const bool is_used = last_.delivered_bytes >= kEnoughBytes;
    const bool is_congested = is_used && 3 * last_.marked_bytes >= 2 * last_.delivered_bytes;
    // A full queue alone causes timeouts of small windows, and a few percent of losses.
    const bool is_lossy = last_.timeouts != 0 && repeated >= last_.delivered_bytes / 8;
    if (is_congested || is_lossy)
      verdict_ = Verdict::kBad;
    else if (is_used && last_.timeouts == 0 && repeated < last_.delivered_bytes / 64 &&
             2 * last_.marked_bytes < last_.delivered_bytes)
      verdict_ = Verdict::kGood;
    else
      verdict_ = Verdict::kUnknown;
    return verdict_;
  }
  // After check() of all flows. `are_others_good`: of enough other flows.
  void compare(bool are_others_good) {
    if (verdict_ == Verdict::kUnknown) return;
    if (verdict_ == Verdict::kGood || !are_others_good) {
      bad_checks_ = 0;
      evidence_ = {};
      return;
    }
    ++bad_checks_;
    evidence_.timeouts += last_.timeouts;
    evidence_.marked_bytes += last_.marked_bytes;
    evidence_.delivered_bytes += last_.delivered_bytes;
  }

  // Whether it was bad at enough checks in a row at which others were good: three, and for 12 round
  // trips, after which TCP itself looks for another path over IPv6 (MarkedRounds).
  bool is_worth_leaving() const {
    constexpr std::uint32_t kBadChecks = 3;
    return bad_checks_ >= kBadChecks && bad_checks_ * kWatchInterval >= 12 * seen_.srtt;
  }
  std::uint32_t bad_checks() const { return bad_checks_; }
  // The evidence of these checks.
  std::uint32_t timeouts() const { return evidence_.timeouts; }
  std::uint32_t marked_percent() const {
    const std::uint64_t delivered = std::max<std::uint64_t>(1, evidence_.delivered_bytes);
    return static_cast<std::uint32_t>(
        std::min<std::uint64_t>(100, evidence_.marked_bytes * 100 / delivered));
  }

 private:
  struct Counts {
    std::uint32_t timeouts = 0;
    std::uint64_t marked_bytes = 0;
    std::uint64_t delivered_bytes = 0;
  };
  StreamHealth seen_;  // At the last check.
  Counts last_;        // Between the last two checks.
  Verdict verdict_ = Verdict::kUnknown;
  std::uint32_t bad_checks_ = 0;
  Counts evidence_;
};

}  // namespace ztcp::msg
