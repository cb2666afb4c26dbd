// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/delivery_rate.h"

#include <chrono>

#include <gtest/gtest.h>

namespace ztcp::tcp {
namespace {

using namespace std::chrono_literals;

class DeliveryRateTest : public testing::Test {
 protected:
  DeliveryRateTest() { rate.begin(start); }
  void send(std::uint32_t bytes) {
    flight += bytes;
    rate.on_sent(now, bytes, flight, lost, 1ms);
  }
  RateSample ack(std::uint32_t bytes, TimePoint sent) {
    flight -= bytes;
    Delivered delivered;
    delivered.bytes = bytes;
    delivered.any = true;
    delivered.newest_sent = sent;
    return rate.on_ack(now, delivered, lost, 1ms);
  }
  const TimePoint start{1h};
  TimePoint now = start;
  std::uint32_t flight = 0;
  std::uint64_t lost = 0;
  DeliveryRate rate;
};

TEST_F(DeliveryRateTest, BytesOfARoundTrip) {
  send(10'000);
  now += 1ms;
  const RateSample sample = ack(10'000, start);
  EXPECT_EQ(sample.bytes, 10'000U);
  EXPECT_EQ(sample.interval, 1ms);
  EXPECT_EQ(sample.prior_delivered_bytes, 0U);
  EXPECT_EQ(sample.delivered_bytes, 10'000U);
  EXPECT_EQ(sample.sent_flight_bytes, 10'000U);
}

// ACKs that come in one heap would show more than the path carries: sending took longer.
TEST_F(DeliveryRateTest, SlowSendingBoundsTheRate) {
  send(1000);
  for (int i = 1; i < 10; ++i) {
    now += 200us;
    send(1000);
  }
  const TimePoint last = now;
  now += 1ms;
  const RateSample sample = ack(10'000, last);
  EXPECT_EQ(sample.bytes, 10'000U);
  EXPECT_EQ(sample.interval, 2800us);
}

TEST_F(DeliveryRateTest, SegmentTakesTheLatestStateBeforeIt) {
  send(1000);
  now += 1ms;
  ack(1000, start);
  const TimePoint second = now;
  send(1000);
  now += 10us;  // Less than a sixteenth of a round trip.
  send(500);
  const TimePoint third = now;
  now = second + 1010us;
  const RateSample sample = ack(1500, third);
  EXPECT_EQ(sample.prior_delivered_bytes, 1000U);
  EXPECT_EQ(sample.bytes, 1500U);
  EXPECT_EQ(sample.sent_flight_bytes, 1500U);
  EXPECT_EQ(sample.interval, 1010us);
}

TEST_F(DeliveryRateTest, LossesSinceTheSegmentWasSent) {
  lost = 300;
  send(1000);
  lost = 500;
  now += 1ms;
  EXPECT_EQ(ack(1000, start).lost_bytes, 200U);
}

TEST_F(DeliveryRateTest, MarksWhatTheUserLimits) {
  send(1000);
  rate.on_app_limited(flight);
  now += 500us;
  const TimePoint limited = now;
  send(1000);
  now += 500us;
  EXPECT_FALSE(ack(1000, start).app_limited) << "sent before the user was the limit";
  now += 500us;
  EXPECT_TRUE(ack(1000, limited).app_limited);
  const TimePoint after = now;
  send(1000);
  now += 1ms;
  EXPECT_FALSE(ack(1000, after).app_limited);
}

TEST_F(DeliveryRateTest, MarksWhatThePeersWindowLimits) {
  send(1000);
  rate.on_peer_limited(flight);
  now += 500us;
  const TimePoint limited = now;
  send(1000);
  now += 500us;
  EXPECT_FALSE(ack(1000, start).peer_limited) << "sent before the window was the limit";
  const TimePoint after = now;
  send(1000);
  now += 500us;
  EXPECT_TRUE(ack(1000, limited).peer_limited);
  now += 500us;
  EXPECT_FALSE(ack(1000, after).peer_limited);
}

TEST_F(DeliveryRateTest, RejectsAnAnswerFasterThanThePath) {
  send(1000);
  now += 100us;
  EXPECT_EQ(ack(1000, start).interval, Duration::zero());
}

// More than the ring holds, and a stall: the ACK still has a sample.
TEST_F(DeliveryRateTest, FullRingKeepsItsOldStates) {
  for (int i = 0; i < 100; ++i) {
    send(1000);
    now += 100us;
  }
  const RateSample sample = ack(1000, start);
  EXPECT_EQ(sample.bytes, 1000U);
  EXPECT_EQ(sample.interval, 10ms);
  const RateSample last = ack(99'000, start + 9900us);
  EXPECT_EQ(last.bytes, 100'000U);
  EXPECT_EQ(last.interval, 10ms);
}

TEST_F(DeliveryRateTest, NoSegmentNoSample) {
  send(1000);
  now += 1ms;
  Delivered part;
  part.bytes = 100;
  const RateSample sample = rate.on_ack(now, part, 0, 1ms);
  EXPECT_EQ(sample.interval, Duration::zero());
  EXPECT_EQ(sample.delivered_bytes, 100U);
}

}  // namespace
}  // namespace ztcp::tcp
