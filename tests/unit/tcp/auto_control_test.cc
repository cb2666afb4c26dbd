// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/auto_control.h"

#include <chrono>
#include <new>
#include <string_view>

#include <gtest/gtest.h>

#include "tests/unit/tcp/mss.h"

namespace ztcp::tcp {
namespace {

using namespace std::chrono_literals;
using test::kRoundMss;

class AutoControlTest : public testing::Test {
 protected:
  AutoControlTest() {
    window.mss_bytes = kRoundMss;
    window.cwnd_bytes = 10 * kRoundMss;
    control.begin(window);
  }
  // One round trip of ten segments in one ACK.
  void round(Duration rtt, std::uint32_t lost_bytes = 0, std::uint32_t ce_bytes = 0) {
    now += rtt;
    const std::uint64_t sent_at = delivered;
    delivered += 10 * kRoundMss;
    CongestionControl::Ack ack{.ack = SeqNum(static_cast<std::uint32_t>(delivered)),
                               .snd_nxt = SeqNum(static_cast<std::uint32_t>(delivered)) + 10'000,
                               .acked_bytes = 10 * kRoundMss,
                               .ce_bytes = ce_bytes,
                               .window_limited = true,
                               .rtt_sample = rtt,
                               .srtt = rtt,
                               .min_rtt = min_rtt,
                               .delivered_bytes = 10 * kRoundMss,
                               .lost_bytes = lost_bytes,
                               .flight_bytes = 9 * kRoundMss};
    ack.rate = {.interval = rtt,
                .bytes = 10 * kRoundMss,
                .delivered_bytes = delivered,
                .prior_delivered_bytes = sent_at,
                .lost_bytes = lost_bytes,
                .sent_flight_bytes = 10 * kRoundMss};
    control.on_ack(now, ack, window);
  }
  void lose(Duration rtt, Duration pause = 0ms) {
    now += pause;
    round(rtt);
    window.ssthresh_bytes = control.on_loss(window);
    window.cwnd_bytes = window.ssthresh_bytes;
    round(rtt, kRoundMss);
  }
  void mark(Duration rtt) {
    round(rtt, 0, 5 * kRoundMss);
    window.cwnd_bytes = window.ssthresh_bytes = control.on_mark(window);
  }
  void change_to_dctcp() {
    new (&control) AutoControl(SeqNum(0), true);
    for (std::uint32_t i = 0; i < AutoControl::kEarlyMarks; ++i) mark(1200us);
    round(1ms);
    ASSERT_TRUE(control.uses_dctcp());
  }
  void change_to_bbr() {
    for (std::uint32_t i = 0; i < AutoControl::kLosses; ++i) lose(1ms);
    ASSERT_TRUE(control.uses_bbr());
  }

  Duration min_rtt = 1ms;
  AutoControl control{SeqNum(0)};
  CongestionControl::Window window;
  TimePoint now{1h};
  std::uint64_t delivered = 0;
};

TEST_F(AutoControlTest, BeginsWithCubic) {
  EXPECT_EQ(std::string_view(control.name()), "cubic");
  EXPECT_FALSE(window.rate_based);
  for (int i = 0; i < 100; ++i) round(1ms);
  EXPECT_FALSE(control.uses_bbr());
}

TEST_F(AutoControlTest, LossesWithoutAQueueChangeToBbr) {
  for (std::uint32_t i = 0; i + 1 < AutoControl::kLosses; ++i) lose(1100us);
  EXPECT_FALSE(control.uses_bbr());
  lose(1100us);
  EXPECT_TRUE(control.uses_bbr());
  EXPECT_TRUE(window.rate_based);
  EXPECT_EQ(std::string_view(control.name()), "bbr");
}

TEST_F(AutoControlTest, LossesWithAQueueDoNot) {
  for (std::uint32_t i = 0; i < 10 * AutoControl::kLosses; ++i) lose(1300us);
  EXPECT_FALSE(control.uses_bbr());
}

TEST_F(AutoControlTest, OneQueuedLossBeginsTheCountAnew) {
  for (int i = 0; i < 20; ++i) {
    for (std::uint32_t k = 0; k + 1 < AutoControl::kLosses; ++k) lose(1ms);
    lose(2ms);
    round(1ms);
    round(1ms);
  }
  EXPECT_FALSE(control.uses_bbr());
}

TEST_F(AutoControlTest, MarksTellOfAQueue) {
  for (int i = 0; i < 20; ++i) {
    for (std::uint32_t k = 0; k + 1 < AutoControl::kLosses; ++k) lose(1ms);
    control.on_mark(window);
  }
  EXPECT_FALSE(control.uses_bbr());
}

TEST_F(AutoControlTest, MarksInAShortQueueChangeToDctcp) {
  change_to_dctcp();
  EXPECT_EQ(std::string_view(control.name()), "dctcp");
  const std::uint32_t before = window.cwnd_bytes;
  for (int i = 0; i < 200; ++i) round(1ms, 0, kRoundMss);
  mark(1200us);
  EXPECT_GT(window.cwnd_bytes, before) << "a tenth is marked, and DCTCP answers by a twentieth";
}

TEST_F(AutoControlTest, MarksInALongQueueDoNot) {
  new (&control) AutoControl(SeqNum(0), true);
  for (std::uint32_t i = 0; i < 10 * AutoControl::kEarlyMarks; ++i) mark(6ms);
  EXPECT_FALSE(control.uses_dctcp());
}

TEST_F(AutoControlTest, MarksThatThePeerDoesNotCountDoNot) {
  for (std::uint32_t i = 0; i < 10 * AutoControl::kEarlyMarks; ++i) mark(1200us);
  EXPECT_FALSE(control.uses_dctcp());
}

TEST_F(AutoControlTest, LossesWithoutMarksEndDctcpForATime) {
  change_to_dctcp();
  for (std::uint32_t i = 0; i + 1 < AutoControl::kUnmarkedLosses; ++i) lose(1ms);
  mark(1200us);
  for (std::uint32_t i = 0; i + 1 < AutoControl::kUnmarkedLosses; ++i) lose(1ms);
  EXPECT_TRUE(control.uses_dctcp()) << "marks came between the losses";
  lose(1ms);
  EXPECT_FALSE(control.uses_dctcp());
  for (std::uint32_t i = 0; i < AutoControl::kEarlyMarks; ++i) mark(1200us);
  round(1ms);
  EXPECT_FALSE(control.uses_dctcp());
  now += AutoControl::kFirstStay;
  round(1ms);
  EXPECT_TRUE(control.uses_dctcp());
}

// CUBIC recovers between such losses.
TEST_F(AutoControlTest, RareLossesDoNot) {
  for (std::uint32_t i = 0; i < 10 * AutoControl::kLosses; ++i) lose(1ms, 5s);
  EXPECT_FALSE(control.uses_bbr());
}

TEST_F(AutoControlTest, ShortPathsStayWithCubic) {
  min_rtt = 50us;
  for (std::uint32_t i = 0; i < 10 * AutoControl::kLosses; ++i) lose(50us);
  EXPECT_FALSE(control.uses_bbr());
}

// Other traffic fills the queue, so that BBR's cruising does not find the path's round trip again.
TEST_F(AutoControlTest, ReturnsToCubicWhenLossesComeWithAQueue) {
  change_to_bbr();
  for (int i = 0; i < 100; ++i) round(1ms);
  ASSERT_TRUE(control.uses_bbr());
  for (int i = 0; i < 200 && control.uses_bbr(); ++i) round(2ms, kRoundMss);
  EXPECT_FALSE(control.uses_bbr());
  EXPECT_FALSE(window.rate_based);
  EXPECT_EQ(window.ssthresh_bytes, window.cwnd_bytes) << "congestion avoidance";
  for (std::uint32_t i = 0; i < 2 * AutoControl::kLosses; ++i) lose(1ms);
  EXPECT_FALSE(control.uses_bbr()) << "it stays with CUBIC for a time";
  now += AutoControl::kFirstStay;
  for (std::uint32_t i = 0; i < AutoControl::kLosses; ++i) lose(1ms);
  EXPECT_TRUE(control.uses_bbr());
}

// A late poller, or a queue of its own, delays packets; those that are lost are lost by chance.
TEST_F(AutoControlTest, StaysWithBbrWhereAQueueLosesNoMore) {
  change_to_bbr();  // After losing one segment in twenty.
  for (int i = 0; i < 1000; ++i) round(1ms, kRoundMss / 2);
  for (int i = 0; i < 1000; ++i) round(2ms, kRoundMss / 2);
  EXPECT_TRUE(control.uses_bbr());
}

// As in a shallow buffer, which hides the queue.
TEST_F(AutoControlTest, ReturnsToCubicWhenBbrLosesMore) {
  change_to_bbr();  // After losing one segment in twenty.
  for (int i = 0; i < 1000; ++i) round(1ms, kRoundMss / 2);
  ASSERT_TRUE(control.uses_bbr()) << "as many as before";
  for (int i = 0; i < 1000 && control.uses_bbr(); ++i) round(1ms, kRoundMss * 3 / 2);
  EXPECT_FALSE(control.uses_bbr());
}

TEST_F(AutoControlTest, APathThatLosesMuchStaysWithCubic) {
  for (std::uint32_t i = 0; i < 10 * AutoControl::kLosses; ++i) {
    lose(1ms);
    round(1ms, 2 * kRoundMss);
  }
  EXPECT_FALSE(control.uses_bbr());
}

}  // namespace
}  // namespace ztcp::tcp
