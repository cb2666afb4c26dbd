// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The product's turn over a NIC that is slower than the stack: frames wait in the right place, and
// only the cable loses any.
#include <algorithm>
#include <chrono>
#include <memory>

#include <gtest/gtest.h>

#include "tests/sim/turn_host.h"

namespace ztcp::sim {
namespace {

using namespace std::chrono_literals;

// A connection as NCCL has it, of several flows, one way.
class FullRing : public testing::Test {
 protected:
  static constexpr std::size_t kBytes = 160 * TurnClient::kMessageBytes;

  void begin(const LineOptions& line) {
    now_ = TurnHost::kBegin;
    LineOptions back = line;
    back.loss = 0;
    out_ = pattern(kBytes, 3);
    in_ = Bytes(kBytes);
    from_ = std::make_unique<TurnHost>(1, line);
    to_ = std::make_unique<TurnHost>(2, back);
    from_->link.join(to_->link);
    to_->link.join(from_->link);
    to_->inboxes = {&in_};
    sender_ = &from_->connect(*to_, out_);
  }
  void turn() {
    now_ += kTurn;
    from_->turn(now_);
    to_->turn(now_);
  }
  void run_for(Duration span) {
    for (const TimePoint end = now_ + span; now_ < end;) turn();
  }
  // Until all is received and acknowledged.
  void run() {
    const TimePoint end = now_ + 20s;
    while (!is_done()) {
      ASSERT_FALSE(sender_->failed);
      ASSERT_LT(now_, end) << "received " << (to_->receivers.empty() ? 0 : received());
      turn();
    }
    EXPECT_EQ(in_, out_);
  }
  std::size_t received() const { return to_->receivers[0]->done; }
  bool is_done() const {
    return sender_->is_done() && !to_->receivers.empty() && to_->receivers[0]->is_done();
  }
  // Each segment that the stack made has left: missing ones were lost by the cable.
  void expect_all_left() { EXPECT_EQ(from_->link.sent_segments, counters().tx_segments); }
  const tcp::Counters& counters() const { return from_->engine.stack().counters(); }
  double share_of_line_used() const {
    return static_cast<double>(from_->link.time_busy().count()) /
           static_cast<double>((now_ - TurnHost::kBegin).count());
  }

  TimePoint now_{};
  Bytes out_;
  Bytes in_;
  std::unique_ptr<TurnHost> from_;
  std::unique_ptr<TurnHost> to_;
  TurnSender* sender_ = nullptr;
};

// Retransmissions happen when the ring is fullest: of data sent at the line's speed.
TEST_F(FullRing, RetransmissionsAreLostOnlyByTheCable) {
  for (const bool says_room : {true, false}) {
    SCOPED_TRACE(says_room ? "the link reports its room" : "it refuses");
    begin({.loss = 0.001, .says_room = says_room});
    run();
    EXPECT_GT(from_->link.lost, 20U);
    EXPECT_EQ(counters().rto_fired, 0U);
    expect_all_left();
    EXPECT_GT(share_of_line_used(), 0.97);
    if (says_room) {
      EXPECT_EQ(from_->link.refused, 0U) << "made without room for them";
    } else {
      EXPECT_GT(from_->link.refused, 0U);
    }
  }
}

// The link refuses retransmissions again and again and takes all other frames: a retransmission
// dropped after it was made would cost a timeout.
TEST_F(FullRing, ARetransmissionThatTheLinkRefusesLeavesLater) {
  begin({.loss = 0.001, .says_room = false});
  std::size_t asked = 0;
  std::size_t refused = 0;
  from_->link.refuses = [&](const TxFrame& frame) {
    const bool full = frame.copy_payload && ++asked % 4 != 0;
    refused += full ? 1 : 0;
    return full;
  };
  run();
  EXPECT_GT(from_->link.lost, 20U);
  EXPECT_GT(refused, 3 * 20U);
  EXPECT_EQ(counters().rto_fired, 0U);
  expect_all_left();
}

// A ring that holds more than the line needs must not be filled: all frames would queue behind it.
TEST_F(FullRing, ALargeRingIsFilledOnlyAsFarAsTheLineNeeds) {
  begin({.ring_frames = 4096});
  run();
  EXPECT_GT(share_of_line_used(), 0.97);
  // 0.1 ms of 10 Gb/s, where the ring holds 5 ms.
  EXPECT_LE(from_->link.most_queued_bytes, 2 * ustack::QueueLimit::kLeastBytes);
}

// A device that hangs, or a paused line, for less than the time after which TCP gives up.
TEST_F(FullRing, ARingThatStaysFullForSecondsLosesNothing) {
  for (const bool says_room : {true, false}) {
    SCOPED_TRACE(says_room ? "the link reports its room" : "it refuses");
    begin({.says_room = says_room});
    run_for(2ms);
    ASSERT_FALSE(is_done());
    ASSERT_GT(received(), 0U);
    const std::uint64_t made = counters().tx_segments;
    from_->link.is_stuck = true;
    run_for(3s);
    // Frames that the link does not take stay in the stack, except the burst it was offered.
    EXPECT_LE(counters().tx_segments, made + ustack::Transmitter::kBurst);
    from_->link.is_stuck = false;
    run();
    expect_all_left();
  }
}

// The user has its memory back although frames still wait: they are copies by then.
TEST_F(FullRing, FramesThatWaitWhenASessionEndsKeepTheirBytes) {
  begin({.says_room = false});
  run_for(2ms);
  std::size_t scribbled = 0;
  from_->link.refuses = [&](const TxFrame& frame) {
    for (const Fragment& fragment : std::span(frame.fragments).first(frame.fragment_count)) {
      const std::span bytes(fragment.data, fragment.size_bytes);
      const auto last = bytes.last(std::min<std::size_t>(bytes.size(), 32));
      scribbled += last.size() == 32 && std::all_of(last.begin(), last.end(), [](std::byte b) {
                     return b == std::byte{0xdd};
                   });
    }
    return false;
  };
  // The ring is full of data at the line's speed, and more waits in front of it.
  from_->link.is_stuck = true;
  run_for(100us);
  sender_->on_link_lost(now_);  // Aborts, and overwrites the memory.
  from_->link.is_stuck = false;
  const std::uint64_t sent = from_->link.sent;
  run_for(10ms);
  EXPECT_GT(from_->link.sent, sent + 1) << "nothing waited";
  EXPECT_EQ(scribbled, 0U);
}

}  // namespace
}  // namespace ztcp::sim
