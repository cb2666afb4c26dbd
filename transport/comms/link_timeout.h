// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The timeout of a connect whose own device has no carrier. It starts when the carrier is found
// missing, not when the connect began: a link that goes down for a moment must not end a connect
// that has waited long for its peer. Belongs to one thread.
#pragma once

#include <chrono>
#include <optional>

#include "core/clock.h"

namespace ztcp::comms {

class LinkTimeout {
 public:
  using At = std::chrono::steady_clock::time_point;

  void set_limit(Duration limit) { limit_ = limit; }
  bool is_over(At now, bool is_up) {
    if (is_up)
      down_since_.reset();
    else if (!down_since_)
      down_since_ = now;
    return !is_up && now - *down_since_ >= limit_;
  }

 private:
  Duration limit_{};
  std::optional<At> down_since_;
};

}  // namespace ztcp::comms
