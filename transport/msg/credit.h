// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The sender's view of its credit (record.h, "Credit"): the newest credit of each lane, and the
// session's messages that are out without a posted buffer.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/clock.h"
#include "transport/msg/record.h"

namespace ztcp::msg {

// The messages of one tag. Sent in order; a message begins with its first chunk.
struct SendLane {
  std::uint32_t tag;
  bool is_small;              // Whether the message begun last is small (record.h, "When credit is
                              // told").
  std::uint64_t small_since;  // If is_small: the first of the small messages in a row.
  std::uint64_t messages;     // Number of the owner's next message.
  std::uint64_t handed_out;   // Messages sent as a whole once. <= begun <= handed_out + 1.
  std::uint64_t begun;
  std::uint64_t mixed_until;  // Messages before this one closely follow a message without a copy.
  // The receiver's numbers.
  std::uint64_t posted;
  std::uint64_t received;

  bool is_posted(std::uint64_t message) const { return message < posted; }
  // Messages out without a buffer that we know of.
  std::uint64_t unposted_out() const { return begun > posted ? begun - posted : 0; }
};

class SenderCredit {
 public:
  void on_accept(const Accept& accept) {
    allowance_bytes_ = accept.allowance_bytes;
    window_ = accept.message_window;
  }

  // Records on different flows may overtake one another: the greatest of each number counts. False
  // when the peer claims to have released more than was ever charged, or received messages never
  // sent.
  [[nodiscard]] bool on_released(std::uint64_t released) {
    released_ = std::max(released_, released);
    return released <= eager_sent_;
  }
  [[nodiscard]] bool on_credit(SendLane& lane, const Credit& credit) {
    if (credit.posted > lane.posted) {
      unposted_out_ -= lane.unposted_out();
      lane.posted = credit.posted;
      unposted_out_ += lane.unposted_out();
    }
    if (credit.received > lane.received) {
      received_ += credit.received - lane.received;
      lane.received = credit.received;
    }
    return on_released(credit.released) && lane.received <= lane.begun;
  }
  // The receiver has closed with all messages of the lane in their buffers.
  void on_all_received(SendLane& lane) {
    static_cast<void>(on_credit(lane, Credit{lane.messages, 0, lane.messages, lane.tag}));
  }

  // Messages received, of all lanes.
  std::uint64_t received() const { return received_; }

  // Whether the lane's next message may be sent without a posted buffer.
  bool may_go_eagerly(const SendLane& lane) const {
    if (lane.handed_out >= lane.received + window_) return false;
    return lane.begun != lane.handed_out || unposted_out_ < kMaxUnexpected;
  }
  std::uint64_t eager_room() const {
    const std::uint64_t held = eager_sent_ - released_;
    return allowance_bytes_ > held ? allowance_bytes_ - held : 0;
  }
  void charge(std::uint64_t bytes) { eager_sent_ += bytes; }
  // Bytes lost with their flow were sent again plainly. (A peer may claim that it has released
  // bytes it never held.)
  void refund(std::uint64_t bytes) { eager_sent_ -= std::min(bytes, eager_sent_ - released_); }
  // Whether the receiver may send credit unasked because of eager bytes (record.h).
  bool may_be_told_of_eager() const { return eager_sent_ - released_ >= allowance_bytes_ / 2; }
  void begin(SendLane& lane, std::uint64_t total) {
    const bool was_small = lane.is_small;
    lane.is_small = is_small(total, allowance_bytes_);
    if (!was_small) lane.small_since = lane.begun;
    if (!lane.is_posted(lane.begun++)) ++unposted_out_;
  }

 private:
  std::uint64_t eager_sent_ = 0;
  std::uint64_t released_ = 0;
  std::uint64_t received_ = 0;
  std::uint64_t unposted_out_ = 0;  // Over all lanes.
  std::uint64_t allowance_bytes_ = 0;
  std::uint64_t window_ = 0;
};

// The time in which a session had messages to send, and the receiver's credit allowed none of them.
class CreditWait {
 public:
  void set(TimePoint now, bool waits) {
    if (waits == (since_ != kNever)) [[likely]]
      return;
    if (waits) {
      ++times_;
      since_ = now;
    } else {
      time_ += now - since_;
      since_ = kNever;
    }
  }
  std::uint64_t times() const { return times_; }
  Duration time(TimePoint now) const {
    return time_ + (since_ != kNever ? now - since_ : Duration::zero());
  }

 private:
  std::uint64_t times_ = 0;
  Duration time_{};  // Earlier waits.
  TimePoint since_ = kNever;
};

}  // namespace ztcp::msg
