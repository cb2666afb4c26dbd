// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Times the messages of one connection for the statistics page, by the rule of
// comms::ConnectionPage: large ones, and one small one in 16. The others read no clock. Used by the
// comm's thread.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "core/clock.h"
#include "transport/verbs/connection_report.h"
#include "transport/verbs/control_connection.h"

namespace ztcp::verbs {

class MessageTimer {
 public:
  // `report` null: no message is timed.
  explicit MessageTimer(ConnectionReport* report) : report_(report) {}

  struct Begun {
    TimePoint at{};           // Zero: it is not timed.
    bool is_sampled = false;  // Also if it is small.
  };

  // A send was not taken, and is posted again: its time begins now.
  void hold(std::size_t size_bytes, int tag) {
    if (report_ == nullptr || held_at_ != TimePoint{} || !is_timed(size_bytes)) return;
    held_at_ = clock_now();
    held_tag_ = tag;
  }
  // The message is posted; the size is that of its buffer.
  Begun begin(std::size_t size_bytes, int tag = 0) {
    if (report_ == nullptr) return {};
    Begun begun;
    if (held_at_ != TimePoint{} && held_tag_ == tag)
      begun.at = std::exchange(held_at_, {});
    else if (is_timed(size_bytes))
      begun.at = clock_now();
    begun.is_sampled = comms::ConnectionPage::is_counted(0, number_++);
    return begun;
  }
  void end(std::size_t size_bytes, const Begun& begun) const {
    if (begun.at == TimePoint{}) return;
    if (begun.is_sampled || size_bytes > comms::ConnectionPage::kSmallBytes)
      report_->add_latency(size_bytes, clock_now() - begun.at);
  }

 private:
  bool is_timed(std::size_t size_bytes) const {
    return comms::ConnectionPage::is_counted(size_bytes, number_);
  }

  ConnectionReport* const report_;
  std::uint64_t number_ = 0;  // Of the next message.
  TimePoint held_at_{};       // Zero: none is held.
  int held_tag_ = 0;
};

}  // namespace ztcp::verbs
