// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The pieces that a request reports to a profiler (Request::pieces() of both comms).
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "tests/unit/verbs/rails_fixture.h"

namespace ztcp::verbs {
namespace {

using Facts = std::array<PieceFacts, kMaxPieces>;

class PiecesTest : public RailsFixture {
 protected:
  // The sender's devices are fake0 and fake1, the receiver's fake2 and fake3.
  PiecesTest()
      : RailsFixture({merged(nic_on("fake0"), "from"), merged(nic_on("fake1"), "from"),
                      merged(nic_on("fake2"), "to"), merged(nic_on("fake3"), "to")}) {}

  Request* receive() {
    const auto posted = test::post_recv(*pair_.receiver, place(to_, 0), to_key_);
    return posted ? *posted : nullptr;
  }
  Request* send(std::size_t size) {
    return test::post_until_taken(*pair_.sender, place(from_, 0).first(size), from_key_);
  }
  static void finish(Request& receive, Request& send) {
    for (bool received = false, sent = false; !received || !sent;) {
      if (!received) received = *receive.test({});
      if (!sent) sent = *send.test({});
    }
  }
  bool is_pair_of(const char* device, std::uint32_t number) {
    const auto numbers = host_.devices.pairs_of(device);
    return std::ranges::find(numbers, number) != numbers.end();
  }
};

TEST_F(PiecesTest, OfALargeMessageAreThoseOfEachRail) {
  Request* const to = receive();
  ASSERT_NE(to, nullptr);
  Request* const from = send(kSize);
  ASSERT_NE(from, nullptr);
  Facts facts;
  ASSERT_EQ(from->pieces(facts), 2U);
  EXPECT_EQ(facts[0].size_bytes + facts[1].size_bytes, kSize);
  EXPECT_EQ(facts[0].rail, 0U);
  EXPECT_EQ(facts[1].rail, 1U);
  EXPECT_TRUE(is_pair_of("fake0", facts[0].queue_pair));
  EXPECT_TRUE(is_pair_of("fake1", facts[1].queue_pair));
  EXPECT_NE(facts[0].number, facts[1].number);
  finish(*to, *from);
}

TEST_F(PiecesTest, ASmallMessageIsOnePiece) {
  for (int n = 0; n < 20; ++n) {
    Request* const to = receive();
    ASSERT_NE(to, nullptr);
    Request* const from = send(100);
    ASSERT_NE(from, nullptr);
    Facts facts;
    ASSERT_EQ(from->pieces(facts), 1U) << n;
    EXPECT_EQ(facts[0].size_bytes, 100U);
    EXPECT_EQ(facts[0].number, 0U);
    finish(*to, *from);
  }
}

TEST_F(PiecesTest, FinishOneByOne) {
  Request* const to = receive();
  ASSERT_NE(to, nullptr);
  Request* const from = send(kSize);
  ASSERT_NE(from, nullptr);
  std::uint32_t before = 0;
  for (bool received = false, sent = false; !received || !sent;) {
    if (!received) received = *to->test({});
    if (sent) continue;
    sent = *from->test({});
    if (sent) continue;
    const std::uint32_t finished = from->finished_pieces() & 3U;
    EXPECT_EQ(finished & before, before) << "a piece that had finished waits again";
    EXPECT_NE(finished, 3U) << "all have finished, and the request is not done";
    before = finished;
  }
}

TEST_F(PiecesTest, OfAReceiveAreTheQueuePairThatToldTheSender) {
  Request* const to = receive();
  ASSERT_NE(to, nullptr);
  Facts facts;
  ASSERT_EQ(to->pieces(facts), 1U);
  EXPECT_EQ(facts[0].rail, 0U);
  EXPECT_TRUE(is_pair_of("fake2", facts[0].queue_pair));
  Request* const from = send(kSize);
  ASSERT_NE(from, nullptr);
  finish(*to, *from);
}

}  // namespace
}  // namespace ztcp::verbs
