// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// When to solicit routers (RFC 4861 section 6.3.7): three times, four seconds apart, until stop().
//
// Owned by a Stack.
#pragma once

#include <algorithm>
#include <chrono>

#include "core/clock.h"

namespace ztcp::tcp {

class RouterSolicitor {
 public:
  // RFC 4861 section 10.
  static constexpr int kSolicitations = 3;
  static constexpr Duration kInterval = std::chrono::seconds(4);

  // Solicits from `now` on: at the start and when the link comes up. One of the stacks of a NIC
  // solicits.
  void solicit(TimePoint now) {
    is_used_ = true;
    left_ = kSolicitations;
    next_ = std::max(now, earliest_);
  }
  // The advertisements heard so far do not suffice any more. Without an earlier solicit(), this has
  // no effect.
  void seek(TimePoint now) {
    if (is_used_ && next_ == kNever) solicit(now);
  }
  void stop() { next_ = kNever; }
  // True: a solicitation is to be sent now. To be called at next_deadline().
  bool take(TimePoint now) {
    if (now < next_) return false;
    earliest_ = now + kInterval;
    next_ = --left_ > 0 ? earliest_ : kNever;
    return true;
  }
  TimePoint next_deadline() const { return next_; }

 private:
  bool is_used_ = false;
  int left_ = 0;
  TimePoint next_ = kNever;
  TimePoint earliest_{};  // None is sent before.
};

}  // namespace ztcp::tcp
