// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/receiver.h"

#include <array>
#include <deque>
#include <vector>

#include <gtest/gtest.h>

namespace ztcp::tcp {
namespace {

using namespace std::chrono_literals;

constexpr SeqNum kNext(0xffffff80);

class ReceiverTest : public testing::Test {
 protected:
  ReceiverTest() : held(1U << 20, 512), receiver(held, counters) {
    receiver.begin(now, {.next = kNext,
                         .window = Receiver::choose_window(4U << 20),
                         .timestamps = true,
                         .timestamp = 1000,
                         .sack = true});
  }
  // Stream bytes [from, to), counted from kNext.
  void arrive(int from, int to) {
    auto& bytes = memory.emplace_back(static_cast<std::size_t>(to - from));
    for (int i = from; i < to; ++i) bytes[static_cast<std::size_t>(i - from)] = std::byte(i & 0xff);
    RxFrame frame;
    frame.head = bytes;
    frame.charge_bytes = 2048;
    receiver.on_payload(frame, kNext + static_cast<std::uint32_t>(from), 0,
                        static_cast<std::uint32_t>(to - from),
                        [&](std::span<const std::byte> piece) {
                          got.insert(got.end(), piece.begin(), piece.end());
                          return true;
                        });
  }
  bool got_in_order(std::size_t size) const {
    if (got.size() != size) return false;
    for (std::size_t i = 0; i < size; ++i)
      if (got[i] != std::byte(i & 0xff)) return false;
    return true;
  }
  std::vector<wire::SackBlock> sack() {
    std::array<wire::SackBlock, 3> out;
    const std::size_t count = receiver.take_sack_blocks(out);
    return {out.begin(), out.begin() + static_cast<std::ptrdiff_t>(count)};
  }
  static wire::SackBlock block(std::uint32_t from, std::uint32_t to) {
    return {(kNext + from).raw(), (kNext + to).raw()};
  }
  using Sack = std::vector<wire::SackBlock>;

  TimePoint now{1h};
  Counters counters;
  HeldFrames held;
  Receiver receiver;
  std::deque<std::vector<std::byte>> memory;
  std::vector<std::byte> got;
};

TEST(ReceiverWindow, ScalesFromEightToTen) {
  const auto small = Receiver::choose_window(64U << 10);
  EXPECT_EQ(small.scale, 8);
  EXPECT_EQ(small.field, 256);
  const auto usual = Receiver::choose_window(4U << 20);
  EXPECT_EQ(usual.scale, 8);
  EXPECT_EQ(usual.field, 16384);
  EXPECT_EQ(Receiver::choose_window(32U << 20).scale, 10);
  const auto most = Receiver::choose_window(1U << 30);
  EXPECT_EQ(most.scale, 10);
  EXPECT_EQ(most.field, 65535);
  EXPECT_EQ(most.bytes, 65535U << 10);
}

TEST_F(ReceiverTest, InOrderBytesAreDeliveredAtOnce) {
  arrive(0, 100);
  arrive(100, 300);
  EXPECT_TRUE(got_in_order(300));
  EXPECT_TRUE(receiver.ack_due());
  EXPECT_FALSE(receiver.has_sack());
  EXPECT_EQ(receiver.rcv_nxt(), kNext + 300);
}

TEST_F(ReceiverTest, FilledHoleReleasesHeldBytes) {
  arrive(100, 200);
  arrive(300, 400);
  EXPECT_TRUE(got.empty());
  EXPECT_EQ(sack(), (Sack{block(300, 400), block(100, 200)}));
  arrive(0, 120);
  EXPECT_TRUE(got_in_order(200));
  EXPECT_EQ(receiver.rcv_nxt(), kNext + 200);
  arrive(150, 350);
  EXPECT_TRUE(got_in_order(400));
  EXPECT_EQ(held.held_frames(), 0U);
}

// RFC 2883 section 4: the duplicate leads, once.
TEST_F(ReceiverTest, ReportsADuplicateOnce) {
  arrive(0, 200);
  arrive(300, 400);
  arrive(50, 150);
  EXPECT_TRUE(receiver.has_sack());
  EXPECT_EQ(sack(), (Sack{block(50, 150), block(300, 400)}));
  EXPECT_EQ(sack(), (Sack{block(300, 400)}));
  arrive(300, 350);
  EXPECT_EQ(sack(), (Sack{block(300, 350), block(300, 400)})) << "inside the block behind it";
}

TEST_F(ReceiverTest, ReportsEachDuplicateOfABurst) {
  arrive(0, 400);
  arrive(0, 100);
  arrive(100, 200);
  arrive(300, 400);
  EXPECT_EQ(sack(), (Sack{block(0, 200)})) << "joined";
  EXPECT_TRUE(receiver.has_unreported());
  EXPECT_EQ(sack(), (Sack{block(300, 400)}));
  EXPECT_FALSE(receiver.has_unreported());
}

// RFC 2883 section 4: also if the held bytes came first, and the same bytes in order afterwards.
TEST_F(ReceiverTest, InOrderBytesThatWereHeldAreReported) {
  arrive(100, 200);
  arrive(300, 400);
  (void)sack();
  arrive(0, 350);
  EXPECT_TRUE(got_in_order(400));
  EXPECT_TRUE(receiver.has_sack());
  EXPECT_EQ(sack(), (Sack{block(100, 200)})) << "the first part, as one ACK can tell";
  EXPECT_FALSE(receiver.has_sack());
}

// RFC 5681 section 4.2: however much there is to report.
TEST_F(ReceiverTest, OwesAtMostOneAckPerSegment) {
  const auto acks = [&] {
    int count = 0;
    for (; receiver.ack_due() || receiver.has_unreported(); ++count) {
      (void)sack();
      receiver.on_ack_sent();
    }
    return count;
  };
  arrive(100, 200);
  arrive(300, 400);
  arrive(500, 600);
  arrive(700, 800);
  EXPECT_EQ(acks(), 2) << "three blocks each";
  arrive(50, 750);  // Over all of them.
  EXPECT_EQ(acks(), 1);
  arrive(0, 50);
  EXPECT_EQ(acks(), 1);
  arrive(700, 900);  // Old and new.
  EXPECT_EQ(acks(), 1);
  arrive(0, 100);
  arrive(200, 300);
  arrive(400, 500);
  EXPECT_EQ(acks(), 3) << "a D-SACK each";
  EXPECT_FALSE(receiver.has_unreported());
}

TEST_F(ReceiverTest, InOrderBytesThatFillAHoleExactlyAreNoDuplicate) {
  arrive(100, 200);
  (void)sack();
  arrive(0, 100);
  EXPECT_TRUE(got_in_order(200));
  EXPECT_FALSE(receiver.has_sack());
}

TEST_F(ReceiverTest, AcceptsSegmentsThatTouchTheWindow) {
  const std::uint32_t window = receiver.window().bytes;
  EXPECT_TRUE(receiver.is_acceptable(kNext, 0));
  EXPECT_TRUE(receiver.is_acceptable(kNext - 10, 11));
  EXPECT_FALSE(receiver.is_acceptable(kNext - 10, 10));
  EXPECT_FALSE(receiver.is_acceptable(kNext - 1, 0));
  EXPECT_TRUE(receiver.is_acceptable(kNext + (window - 1), 100));
  EXPECT_FALSE(receiver.is_acceptable(kNext + window, 100));
}

TEST_F(ReceiverTest, BytesBeyondTheWindowAreCutOff) {
  const auto window = static_cast<int>(receiver.window().bytes);
  arrive(window - 50, window + 50);
  const auto blocks = sack();
  ASSERT_EQ(blocks.size(), 1U);
  EXPECT_EQ(blocks[0].end, (kNext + receiver.window().bytes).raw());
}

// RFC 7323 section 4.3, rule 2, and section 5.3.
TEST_F(ReceiverTest, TimestampsMoveOnlyWithSegmentsThatCoverTheLastAck) {
  EXPECT_TRUE(receiver.passes_paws(now, 1000));
  EXPECT_FALSE(receiver.passes_paws(now, 999));
  receiver.note_timestamp(now, kNext + 5, 2000);
  EXPECT_EQ(receiver.ts_recent(), 1000U) << "out of order";
  receiver.note_timestamp(now, kNext, 2000);
  EXPECT_EQ(receiver.ts_recent(), 2000U);
  EXPECT_FALSE(receiver.passes_paws(now, 1999));
  EXPECT_TRUE(receiver.passes_paws(now + 20min, 1999)) << "too old to prove anything";
}

// RFC 7323 section 5.5: a peer's microsecond clock takes 36 minutes for half of its range.
TEST_F(ReceiverTest, TimestampThatWrappedWhileIdleIsAccepted) {
  now += 50min;
  const std::uint32_t turned = 1000U - 5;
  ASSERT_TRUE(receiver.passes_paws(now, turned));
  receiver.note_timestamp(now, kNext, turned);
  EXPECT_EQ(receiver.ts_recent(), turned) << "or the peer is told an echo of an hour ago";
  EXPECT_FALSE(receiver.passes_paws(now, turned - 1));
}

TEST_F(ReceiverTest, FinWaitsForTheBytesBeforeIt) {
  receiver.note_fin(kNext + 200);
  arrive(100, 200);
  EXPECT_FALSE(receiver.fin_is_next());
  arrive(0, 100);
  EXPECT_TRUE(receiver.fin_is_next());
  receiver.take_fin();
  EXPECT_EQ(receiver.rcv_nxt(), kNext + 201);
}

// Dynamic right-sizing: twice the bytes that arrive in a round trip.
class RightSizing : public testing::Test {
 protected:
  static constexpr std::uint32_t kMost = 16U << 20;
  RightSizing() : held(8U << 20, 512), receiver(held, counters) { begin(receiver); }
  void begin(Receiver& r) {
    r.begin(now, {.next = kNext,
                  .window = Receiver::choose_window(4U << 20, kMost),
                  .timestamps = true,
                  .timestamp = 1000,
                  .sack = true});
    r.begin_measuring(now, kMost);
  }
  void arrive(Receiver& r, std::uint32_t bytes) {
    static const std::vector<std::byte> kZeros(1U << 20);
    while (bytes > 0) {
      RxFrame frame;
      frame.head = kZeros;
      const std::uint32_t part = std::min<std::uint32_t>(bytes, 1U << 20);
      r.on_payload(frame, r.rcv_nxt(), 0, part, [](std::span<const std::byte>) { return true; });
      bytes -= part;
    }
  }
  // One round trip of 10 ms, in which `bytes` arrive.
  void round(Receiver& r, std::uint32_t bytes) {
    arrive(r, bytes);
    now += 10ms;
    EXPECT_LE(r.next_measure(), now);
    r.measure(now, 10ms);
  }

  TimePoint now{1h};
  Counters counters;
  HeldFrames held;
  Receiver receiver;
};

TEST_F(RightSizing, FullWindowDoubles) {
  EXPECT_EQ(receiver.window().scale, 9);
  EXPECT_EQ(receiver.window().bytes, 4U << 20);
  round(receiver, 1U << 20);
  round(receiver, 2U << 20);
  EXPECT_EQ(receiver.window().bytes, 4U << 20) << "half of it suffices";
  round(receiver, 3U << 20);
  EXPECT_EQ(receiver.window().bytes, 6U << 20);
  EXPECT_EQ(receiver.window().field, (6U << 20) >> 9);
  round(receiver, 1000);
  EXPECT_EQ(receiver.window().bytes, 6U << 20) << "it never shrinks";
}

TEST_F(RightSizing, GrowthIsLimitedToTheBytesThatMayBeHeld) {
  for (int i = 0; i < 4; ++i) round(receiver, receiver.window().bytes);
  EXPECT_EQ(receiver.window().bytes, 12U << 20) << "4 MiB and the 8 MiB that may be held";
  Receiver other(held, counters);
  begin(other);
  round(other, 4U << 20);
  EXPECT_EQ(other.window().bytes, 4U << 20);
  receiver.clear();
  round(other, 4U << 20);
  EXPECT_EQ(other.window().bytes, 8U << 20);
  other.clear();
}

TEST_F(RightSizing, RateDecidesNotTheNumberOfBytes) {
  // Ten round trips of 1 ms between two measurements: 4 MiB in 10 ms are little.
  arrive(receiver, 4U << 20);
  now += 4ms;
  receiver.measure(now, 1ms);
  EXPECT_EQ(receiver.window().bytes, 4U << 20);
  // A measurement after a pause is ignored.
  now += 1s;
  arrive(receiver, 64U << 20);
  receiver.measure(now, 1ms);
  EXPECT_EQ(receiver.window().bytes, 4U << 20);
  arrive(receiver, 4U << 20);
  now += 1ms;
  receiver.measure(now, 1ms);
  EXPECT_EQ(receiver.window().bytes, 8U << 20);
}

TEST_F(RightSizing, EndsAtTheLimit) {
  HeldFrames plenty(64U << 20, 16);
  Receiver r(plenty, counters);
  begin(r);
  round(r, 4U << 20);
  round(r, 8U << 20);
  EXPECT_EQ(r.window().bytes, 16U << 20);
  EXPECT_EQ(r.next_measure(), kNever);
  r.clear();
}

}  // namespace
}  // namespace ztcp::tcp
