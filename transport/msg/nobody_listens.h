// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Detects from refused dials that a peer's process has ended. A living process keeps its listener;
// once the process has ended, its host refuses connections to that port. That is believed after all
// dials were refused for a while: a firewall that is starting up refuses them, too.
#pragma once

#include <chrono>
#include <optional>

#include "core/clock.h"

namespace ztcp::msg {

class NobodyListens {
 public:
  // A dial has ended. Returns whether the process has ended, too.
  bool is_sure(TimePoint now, bool was_refused) {
    if (!was_refused) {
      since_.reset();
      return false;
    }
    if (!since_) since_ = now;
    return now - *since_ >= kLongEnough;
  }

 private:
  static constexpr Duration kLongEnough = std::chrono::milliseconds(500);

  std::optional<TimePoint> since_;  // All dials since then were refused.
};

}  // namespace ztcp::msg
