// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/prr.h"

#include <gtest/gtest.h>

namespace ztcp::tcp {
namespace {

constexpr std::uint32_t kMss = 1000;

// RFC 6937 section 3.1, its first example: 100 segments out, one lost, ssthresh 70: seven sent
// for every ten delivered.
TEST(Prr, SendsInProportion) {
  Prr prr;
  prr.begin(100 * kMss);
  std::uint32_t pipe = 99 * kMss;
  std::uint32_t sent = 0;
  for (int i = 0; i < 40; ++i) {
    pipe -= kMss;
    const std::uint32_t window = prr.on_ack(kMss, false, pipe, 70 * kMss, kMss);
    while (pipe + kMss <= window) {
      pipe += kMss;
      sent += kMss;
      prr.on_sent(kMss);
    }
  }
  EXPECT_NEAR(sent, 28 * kMss, kMss);
}

TEST(Prr, LetsTheFirstRetransmissionOut) {
  Prr prr;
  prr.begin(10 * kMss);
  EXPECT_GE(prr.on_ack(0, false, 10 * kMss, 7 * kMss, kMss), 11 * kMss);
}

// Below ssthresh: one segment more than was delivered while there is progress, exactly what was
// delivered otherwise.
TEST(Prr, GrowsBackCarefullyAfterHeavyLoss) {
  Prr prr;
  prr.begin(100 * kMss);
  prr.on_sent(kMss);
  EXPECT_EQ(prr.on_ack(2 * kMss, true, 10 * kMss, 70 * kMss, kMss), 13 * kMss);
  EXPECT_EQ(prr.on_ack(kMss, false, 10 * kMss, 70 * kMss, kMss), 12 * kMss);
}

}  // namespace
}  // namespace ztcp::tcp
