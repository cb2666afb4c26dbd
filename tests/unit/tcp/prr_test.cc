// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/prr.h"

#include <gtest/gtest.h>

#include "tests/unit/tcp/mss.h"

namespace ztcp::tcp {
namespace {

using test::kRoundMss;

// RFC 6937 section 3.1, its first example: 100 segments out, one lost, ssthresh 70: seven sent
// for every ten delivered.
TEST(Prr, SendsInProportion) {
  Prr prr;
  prr.begin(100 * kRoundMss);
  std::uint32_t pipe = 99 * kRoundMss;
  std::uint32_t sent = 0;
  for (int i = 0; i < 40; ++i) {
    pipe -= kRoundMss;
    const std::uint32_t window = prr.on_ack(kRoundMss, false, pipe, 70 * kRoundMss, kRoundMss);
    while (pipe + kRoundMss <= window) {
      pipe += kRoundMss;
      sent += kRoundMss;
      prr.on_sent(kRoundMss);
    }
  }
  EXPECT_NEAR(sent, 28 * kRoundMss, kRoundMss);
}

TEST(Prr, AlwaysReleasesTheFirstRetransmission) {
  Prr prr;
  prr.begin(10 * kRoundMss);
  EXPECT_GE(prr.on_ack(0, false, 10 * kRoundMss, 7 * kRoundMss, kRoundMss), 11 * kRoundMss);
}

// Below ssthresh: one segment more than was delivered while there is progress, otherwise exactly as
// much as was delivered.
TEST(Prr, GrowsBackCarefullyAfterHeavyLoss) {
  Prr prr;
  prr.begin(100 * kRoundMss);
  prr.on_sent(kRoundMss);
  EXPECT_EQ(prr.on_ack(2 * kRoundMss, true, 10 * kRoundMss, 70 * kRoundMss, kRoundMss),
            13 * kRoundMss);
  EXPECT_EQ(prr.on_ack(kRoundMss, false, 10 * kRoundMss, 70 * kRoundMss, kRoundMss),
            12 * kRoundMss);
}

// RFC 9937: the first retransmission, which is always sent, has used up the delivered bytes. Still
// the next ACK releases as much as it delivers; otherwise the flow would wait for its RTO.
TEST(Prr, AnAckReleasesAsMuchAsItDelivers) {
  Prr prr;
  prr.begin(10 * kRoundMss);
  EXPECT_EQ(prr.on_ack(0, false, 9 * kRoundMss, 7 * kRoundMss, kRoundMss), 10 * kRoundMss);
  prr.on_sent(kRoundMss);
  EXPECT_EQ(prr.on_ack(kRoundMss, false, 3 * kRoundMss, 7 * kRoundMss, kRoundMss), 4 * kRoundMss);
}

}  // namespace
}  // namespace ztcp::tcp
