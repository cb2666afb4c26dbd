// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/pacer.h"

#include <gtest/gtest.h>

namespace ztcp::tcp {
namespace {

using namespace std::chrono_literals;

TEST(Pacer, SpreadsTheWindowOverTheRoundTrip) {
  Pacer pacer;
  pacer.set_rate(12'500'000, 10ms);  // 125 kB in 10 ms: 80 ns per byte.
  TimePoint now{1h};
  std::uint32_t sent = 0;
  for (const TimePoint end = now + 10ms; now < end; now += 10us)
    while (pacer.may_send(now)) {
      pacer.on_sent(now, 1000);
      pacer.set_waiting(true);
      sent += 1000;
    }
  EXPECT_NEAR(sent, 125'000 + 128'000 / 80, 2000);
}

TEST(Pacer, LeavesShortPathsAlone) {
  Pacer pacer;
  pacer.set_rate(1'250'000'000, 100us);
  const TimePoint now{1h};
  for (int i = 0; i < 1000; ++i) {
    ASSERT_TRUE(pacer.may_send(now));
    pacer.on_sent(now, 9000);
  }
}

// The slack is an eighth of the round trip: 12.5 us of 10 Gb/s.
TEST(Pacer, PacesAnExactRateOnShortPathsToo) {
  Pacer pacer;
  pacer.set_exact_rate(1'250'000'000, 100us);
  EXPECT_EQ(pacer.most_bytes(), 15'625U);
  TimePoint now{1h};
  std::uint32_t sent = 0;
  for (const TimePoint end = now + 100us; now < end; now += 1us)
    while (pacer.may_send(now)) {
      pacer.on_sent(now, 1000);
      pacer.set_waiting(true);
      sent += 1000;
    }
  EXPECT_NEAR(sent, 125'000 + 15'625, 2000);
}

TEST(Pacer, PollerThatComesLateLosesNothing) {
  Pacer pacer;
  pacer.set_rate(12'500'000, 10ms);
  TimePoint now{1h};
  const auto burst = [&] {
    std::uint32_t sent = 0;
    for (; pacer.may_send(now); sent += 1000) pacer.on_sent(now, 1000);
    pacer.set_waiting(true);
    return sent;
  };
  burst();
  now += 2ms;
  EXPECT_NEAR(burst(), 25'000, 1500) << "the bytes of 2 ms";
  pacer.set_waiting(false);  // Idle instead: no credit.
  now += 2ms;
  EXPECT_LE(burst(), 3000U);
}

// On a crowded machine a poller may run only every 40 ms; its round trips are as long.
TEST(Pacer, StarvedPollerSendsAWindowPerRoundTrip) {
  Pacer pacer;
  pacer.set_rate(3'125'000, 40ms);
  TimePoint now{1h};
  std::uint32_t sent = 0;
  for (int turn = 0; turn < 10; ++turn, now += 40ms) {
    for (; pacer.may_send(now); sent += 1000) pacer.on_sent(now, 1000);
    pacer.set_waiting(true);
  }
  EXPECT_NEAR(sent, 9 * 125'000, 15'000);
}

}  // namespace
}  // namespace ztcp::tcp
