// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Messages that may be out without a posted buffer, over all lanes.
#include "transport/msg/credit.h"

#include <gtest/gtest.h>

namespace ztcp::msg {
namespace {

class SenderCreditTest : public testing::Test {
 protected:
  SenderCreditTest() {
    credit_.on_accept(Accept{true, 8192, 1, 32, 1});
    b_.tag = 1;
  }
  // As the session does for a message that is sent completely.
  static void hand_out(SenderCredit& credit, SendLane& lane) {
    ++lane.messages;
    credit.begin(lane, 1);
    ++lane.handed_out;
  }
  void hand_out(SendLane& lane, int count) {
    for (int i = 0; i < count; ++i) hand_out(credit_, lane);
  }

  SenderCredit credit_;
  SendLane a_{};
  SendLane b_{};
};

TEST_F(SenderCreditTest, CountsTheMessagesOfAllLanesThatHaveNoBuffer) {
  hand_out(a_, 20);
  EXPECT_TRUE(credit_.may_go_eagerly(b_));
  hand_out(b_, 12);
  EXPECT_FALSE(credit_.may_go_eagerly(a_));
  EXPECT_FALSE(credit_.may_go_eagerly(b_));
  // Buffers beyond the sent messages free nothing for other lanes.
  EXPECT_TRUE(credit_.on_credit(b_, Credit{32, 0, 0}));
  EXPECT_TRUE(b_.is_posted(31));
  EXPECT_FALSE(b_.is_posted(32));
  for (int i = 0; i < 12; ++i) {
    EXPECT_TRUE(credit_.may_go_eagerly(a_)) << i;
    hand_out(a_, 1);
  }
  EXPECT_FALSE(credit_.may_go_eagerly(a_));
  hand_out(b_, 20);  // These have their buffers.
  EXPECT_TRUE(credit_.on_credit(a_, Credit{1, 0, 1}));
  EXPECT_TRUE(credit_.may_go_eagerly(a_));
  // Overtaken credit changes nothing.
  EXPECT_TRUE(credit_.on_credit(b_, Credit{5, 0, 2}));
  EXPECT_TRUE(b_.is_posted(31));
  EXPECT_EQ(credit_.received(), 3U);
}

TEST_F(SenderCreditTest, ABegunMessageMayContinue) {
  hand_out(a_, 31);
  ++b_.messages;
  credit_.begin(b_, 1);
  EXPECT_FALSE(credit_.may_go_eagerly(a_));
  EXPECT_TRUE(credit_.may_go_eagerly(b_));
}

TEST_F(SenderCreditTest, ALanesWindowBeginsAtTheReceivedCount) {
  for (int i = 0; i < 32; ++i) {
    hand_out(a_, 1);
    ASSERT_TRUE(credit_.on_credit(a_, Credit{a_.begun, 0, 0}));
  }
  EXPECT_FALSE(credit_.may_go_eagerly(a_));
  EXPECT_TRUE(credit_.may_go_eagerly(b_));
  EXPECT_TRUE(credit_.on_credit(a_, Credit{32, 0, 1}));
  EXPECT_TRUE(credit_.may_go_eagerly(a_));
}

TEST_F(SenderCreditTest, BytesAreChargedUntilReleasedOrSentPlainly) {
  credit_.charge(8000);
  EXPECT_EQ(credit_.eager_room(), 192U);
  credit_.refund(4096);
  EXPECT_EQ(credit_.eager_room(), 192U + 4096U);
  EXPECT_TRUE(credit_.on_released(3904));
  EXPECT_EQ(credit_.eager_room(), 8192U);
  EXPECT_FALSE(credit_.on_released(3905));
}

TEST_F(SenderCreditTest, AReceivedCountBeyondTheSentIsRejected) {
  hand_out(a_, 2);
  EXPECT_TRUE(credit_.on_credit(a_, Credit{3, 0, 2}));
  EXPECT_FALSE(credit_.on_credit(a_, Credit{3, 0, 3}));
}

}  // namespace
}  // namespace ztcp::msg
