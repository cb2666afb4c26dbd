// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The sender's view of what it may send: the newest credit heard and the eager bytes charged
// against the allowance (record.h, "Credit").
#pragma once

#include <algorithm>
#include <cassert>
#include <cstdint>

#include "transport/msg/record.h"

namespace ztcp::msg {

class SenderCredit {
 public:
  void on_accept(const Accept& accept) {
    allowance_bytes_ = accept.allowance_bytes;
    window_ = accept.message_window;
  }

  // Records may overtake one another on different flows: the greatest of each number counts. False
  // when the peer claims to have released more than was ever charged.
  [[nodiscard]] bool on_credit(const Credit& credit) {
    if (credit.released > eager_sent_) return false;
    latest_.posted = std::max(latest_.posted, credit.posted);
    latest_.released = std::max(latest_.released, credit.released);
    latest_.received = std::max(latest_.received, credit.received);
    return true;
  }

  bool is_posted(std::uint64_t message) const { return message < latest_.posted; }
  bool is_in_window(std::uint64_t message) const { return message < latest_.received + window_; }
  std::uint64_t received() const { return latest_.received; }

  std::uint64_t eager_room() const {
    const std::uint64_t held = eager_sent_ - latest_.released;
    return allowance_bytes_ > held ? allowance_bytes_ - held : 0;
  }
  void charge(std::uint64_t bytes) { eager_sent_ += bytes; }
  // The bytes died with their flow.
  void refund(std::uint64_t bytes) {
    assert(bytes <= eager_sent_ - latest_.released);
    eager_sent_ -= bytes;
  }

 private:
  Credit latest_;
  std::uint64_t eager_sent_ = 0;
  std::uint64_t allowance_bytes_ = 0;
  std::uint64_t window_ = 0;
};

}  // namespace ztcp::msg
