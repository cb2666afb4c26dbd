// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What dials to a peer's port say of its process. One that lives listens to the end, and where it
// does no more its host answers for it. That is believed when all have said so for a while: a
// firewall may be on its way in.
#pragma once

#include <chrono>
#include <optional>

#include "transport/core/clock.h"

namespace ztcp::msg {

class NobodyListens {
 public:
  // A dial has ended. Whether the process has, too.
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

  std::optional<TimePoint> since_;  // All that ended from then on were refused.
};

}  // namespace ztcp::msg
