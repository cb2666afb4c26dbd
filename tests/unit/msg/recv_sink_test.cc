// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Places that a stream fills while the session continues.
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/msg/acceptor_fixture.h"

namespace ztcp::msg {
namespace {

class LentPlaces : public AcceptorTest {
 protected:
  static constexpr std::size_t kSize = 256U << 10;
  static constexpr std::size_t kHalf = kSize / 2;

  // A flow that is at the first half of the message, and has lent its place.
  Peer& lend() {
    Peer& peer = greet();
    post(buffer, 1, 0, 0, /*is_polled=*/false);
    peer.say(Chunk{false, kHalf, 0, 0, kSize});
    EXPECT_EQ(peer.events->place().bytes.data(), buffer.data());
    EXPECT_TRUE(peer.events->lend_place());
    return peer;
  }

  std::vector<std::byte> buffer = std::vector<std::byte>(kSize);
};

TEST_F(LentPlaces, AreFilledWhileOtherFlowsBringBytes) {
  Peer& peer = lend();
  Peer& other = greet(hello(5, 1, 1));
  other.say(Chunk{false, kHalf, 0, kHalf, kSize});
  EXPECT_TRUE(other.events->lend_place());
  peer.events->on_placed(now, 0);
  EXPECT_EQ(peer.events->place().bytes.size(), kHalf);
  EXPECT_TRUE(peer.events->lend_place());
  other.events->on_placed(now, kHalf);
  EXPECT_TRUE(done.empty());
  peer.events->on_placed(now, kHalf);
  EXPECT_EQ(done, (Done{{1, kSize}}));
}

// Otherwise the message would be done, and its buffer NCCL's again, while another thread writes
// there.
TEST_F(LentPlaces, CannotBeFilledByAnotherFlow) {
  lend();
  Peer& other = greet(hello(5, 1, 1));
  other.say(Chunk{false, kHalf, 0, kHalf - 4096, kSize});
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].code, Errc::kProtocol);
}

TEST_F(LentPlaces, AreNotLentWhereAnotherFlowWrites) {
  Peer& peer = greet();
  Peer& other = greet(hello(5, 1, 1));
  post(buffer, 1, 0, 0, /*is_polled=*/false);
  peer.say(Chunk{false, kHalf, 0, 0, kSize});
  other.say(Chunk{false, kHalf, 0, 0, kSize});
  EXPECT_FALSE(peer.events->lend_place());
  EXPECT_FALSE(other.events->lend_place());
}

// An owner that is told of the failure, or leaves, may free the buffer at once.
TEST_F(LentPlaces, AreWaitedForBeforeAFailureIsReported) {
  Peer& peer = lend();
  post({buffer.data(), 8}, 2, 0, 1);
  Peer& other = greet(hello(5, 1, 1));
  other.chunk({true, 16, 0, 0, 16, 1});  // Too large.
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(peer.stream.settled, 1);
  peer.events->on_placed(now, kHalf);
  EXPECT_TRUE(done.empty());
}

TEST_F(LentPlaces, AreWaitedForByLeave) {
  Peer& peer = lend();
  sessions[0]->leave(now);
  EXPECT_EQ(peer.stream.settled, 1);
  peer.events->on_placed(now, kHalf);
  EXPECT_TRUE(done.empty());
}

TEST_F(LentPlaces, AreTakenBackWithTheirFlow) {
  Peer& peer = lend();
  peer.events->on_failed(now, Error{Errc::kPeerClosed, 0, ""});
  Peer& again = greet(hello(5, 2));
  again.say(Chunk{false, kHalf, 0, 0, kSize});
  again.events->on_placed(now, kHalf);
  again.chunk({false, kHalf, 0, kHalf, kSize});
  EXPECT_EQ(done, (Done{{1, kSize}}));
  EXPECT_TRUE(failures.empty());
}

TEST_F(LentPlaces, CreditKeepsToTheFirstFlow) {
  settings.keeps_first_flow_free = true;
  make();
  Peer& zero = greet();
  Peer& one = greet(hello(5, 1, 1));
  static_cast<void>(zero.stream.records());
  static_cast<void>(one.stream.records());
  one.chunk({true, 1, 0, 0, 1, 0, /*wants_receipt=*/true});
  post({buffer.data(), 8}, 1);
  acceptor->flush();
  EXPECT_EQ(credit_of(one), std::nullopt);
  EXPECT_EQ(credit_of(zero), (Credit{1, 1, 1}));
}

}  // namespace
}  // namespace ztcp::msg
