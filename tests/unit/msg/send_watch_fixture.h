// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A sender and its clock, with flows that make no progress: shared by the tests of send_watch.cc.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/msg/send_session_fixture.h"

namespace ztcp::msg {

class SendWatch : public SendSessionTest {
 protected:
  // Advances the time, and calls the session at its deadlines.
  void pass(Duration time) {
    const TimePoint end = now + time;
    while (session->next_deadline() <= end) {
      now = std::max(now, session->next_deadline());
      session->on_timers(now);
    }
    now = end;
  }
  // Until so many streams have been dialled.
  void wait_for_dial(std::size_t count) {
    while (failures.empty() && dialled.size() < count) {
      ASSERT_NE(session->next_deadline(), kNever);
      now = std::max(now, session->next_deadline());
      session->on_timers(now);
    }
  }
  // The peer acknowledges on this stream all the time.
  void pass_while_answered(Duration time, std::size_t index) {
    for (const TimePoint end = now + time; now < end;) {
      ack(dialled.at(index), 1);
      pass(std::chrono::milliseconds(2));
    }
  }
  // Four flows are up, and each carries a part of a message.
  void spread() {
    accept(0, Credit{3, 0, 0});
    post(settings.multi_flow_threshold_bytes + 1);
    for (std::size_t i = 1; i < 4; ++i) accept(i);
  }
  // All flows carry bulk until the next check, those of `bad` with a timeout.
  void check(const std::vector<std::size_t>& bad) {
    for (Dialled& d : dialled) {
      d.stream.vitals.delivered_bytes += 1'000'000;
      if (!d.stream.aborted) ack(d, d.acked == 0 ? 70'000 : 1);
    }
    for (const std::size_t i : bad) {
      dialled[i].stream.vitals.timeouts += 1;
      dialled[i].stream.vitals.retransmitted_bytes += 500'000;
    }
    pass(std::chrono::milliseconds(100));
  }
  void over_kernel_sockets() {
    settings.ack_is_delivery = false;
    make();
  }
  static bool has_asked(Dialled& d) {
    for (const auto& record : d.stream.records())
      if (record.header.type == RecordType::kAsk) return true;
    return false;
  }
};

}  // namespace ztcp::msg
