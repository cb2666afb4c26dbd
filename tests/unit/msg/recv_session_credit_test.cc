// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Credit that a session sends for each lane, and when.
#include <algorithm>
#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/msg/acceptor_fixture.h"
#include "transport/msg/reason.h"

namespace ztcp::msg {
namespace {

using RecvSessionTest = AcceptorTest;

TEST_F(RecvSessionTest, MessagesBelongToTheBuffersOfTheirTag) {
  Peer& peer = greet();
  std::array<std::array<std::byte, 8>, 4> buffers{};
  post(buffers[0], 10, 0, /*tag=*/7);
  post(buffers[1], 11, 0, /*tag=*/7);
  post(buffers[2], 20, 0, /*tag=*/9);
  static_cast<void>(peer.stream.records());
  peer.chunk({false, 8, 0, 0, 8, 9}, std::byte{9});
  peer.chunk({false, 8, 1, 0, 8, 7}, std::byte{2});
  peer.chunk({true, 8, 1, 0, 8, 9}, std::byte{3});
  peer.chunk({false, 8, 0, 0, 8, 7}, std::byte{1});
  EXPECT_EQ(done, (Done{{20, 8}, {11, 8}, {10, 8}}));
  post(buffers[3], 21, 0, /*tag=*/9);
  EXPECT_EQ(done.back(), (std::pair<std::uint32_t, std::size_t>{21, 8}));
  EXPECT_EQ(buffers[0][7], std::byte{1});
  EXPECT_EQ(buffers[1][7], std::byte{2});
  EXPECT_EQ(buffers[2][7], std::byte{9});
  EXPECT_EQ(buffers[3][7], std::byte{3});
  peer.say(Ask{});
  acceptor->flush();
  const auto credits = credits_of(peer);
  ASSERT_GE(credits.size(), 2U);
  EXPECT_EQ(*std::find_if(credits.rbegin(), credits.rend(), [](auto& c) { return c.tag == 7; }),
            (Credit{2, 8, 2, 7}));
  EXPECT_EQ(*std::find_if(credits.rbegin(), credits.rend(), [](auto& c) { return c.tag == 9; }),
            (Credit{2, 8, 2, 9}));
}

// The sender has no chunk in flight on it that would show the stall.
TEST_F(RecvSessionTest, CreditOnAFlowThatIsNotAnswered_IsToldAgainOnAnother) {
  Peer& first = greet();
  Peer& second = greet(hello(5, 1, 1));
  std::vector<std::byte> buffer(8);
  post(buffer, 1);
  acceptor->flush();
  const bool is_first = credit_of(first) == Credit{1, 0, 0};
  Peer& stuck = is_first ? first : second;
  Peer& other = is_first ? second : first;
  static_cast<void>(other.stream.records());
  const auto look = [&] {
    now += 2 * kWatchInterval;
    acceptor->on_timers(now);
    acceptor->flush();
  };
  look();
  EXPECT_EQ(credit_of(other), std::nullopt);
  stuck.stream.stalled = {.timeouts = kDeadTimeouts};
  look();
  EXPECT_EQ(credit_of(other), (Credit{1, 0, 0}));
  look();
  EXPECT_EQ(credit_of(other), std::nullopt) << "once suffices";
  EXPECT_FALSE(stuck.stream.is_left()) << "its sender decides";

  // It works again, and messages move.
  stuck.stream.stalled = {.is_acked = true};
  stuck.chunk({false, 8, 0, 0, 8, 0, /*wants_receipt=*/true});
  post(buffer, 2);
  look();
  EXPECT_EQ(credit_of(stuck), (Credit{2, 0, 1})) << "it takes credit again";
}

// NCCL posts long before messages arrive, and the check is a system call.
TEST_F(RecvSessionTest, FlowsWithoutUnacknowledgedBytesAreNotChecked) {
  Peer& first = greet();
  Peer& second = greet(hello(5, 1, 1));
  std::vector<std::byte> buffer(8);
  post(buffer, 1);
  acceptor->flush();
  first.stream.stalled = second.stream.stalled = {.is_acked = true};
  for (int i = 0; i < 50; ++i) {
    now += 2 * kWatchInterval;
    acceptor->on_timers(now);
  }
  EXPECT_LE(first.stream.stall_asks, 1);
  EXPECT_LE(second.stream.stall_asks, 1);
}

TEST_F(RecvSessionTest, OnlyChangedLanesGetCredit) {
  Peer& peer = greet();
  std::vector<std::byte> buffer(8);
  post(buffer, 1, 0, /*tag=*/1);
  post(buffer, 2, 0, /*tag=*/2);
  acceptor->flush();
  EXPECT_EQ(credits_of(peer), (std::vector<Credit>{{1, 0, 0, 1}, {1, 0, 0, 2}}));
  peer.chunk({false, 8, 0, 0, 8, 2, /*wants_receipt=*/true});
  acceptor->flush();
  EXPECT_EQ(credits_of(peer), (std::vector<Credit>{{1, 0, 1, 2}}));
  // But all lanes, once a flow was lost that may have carried the newest credit.
  greet(hello(5, 1, 1));
  peer.events->on_failed(now, Error{Errc::kTimedOut, 0, ""});
  static_cast<void>(peers.back().stream.records());
  acceptor->flush();
  EXPECT_EQ(credits_of(peers.back()), (std::vector<Credit>{{1, 0, 0, 1}, {1, 0, 1, 2}}));
}

TEST_F(RecvSessionTest, EachLaneHasItsOwnWindow) {
  Peer& peer = greet();
  std::array<std::byte, 8> buffer{};
  for (std::uint32_t i = 0; i < 40; ++i) post(buffer, i, 0, /*tag=*/1);
  post(buffer, 100, 0, /*tag=*/2);
  for (std::uint64_t i = 0; i < 200; ++i) {
    peer.chunk({false, 8, i, 0, 8, 2});
    ASSERT_EQ(done.size(), i + 1);
    post(buffer, 100, 0, /*tag=*/2);
  }
  for (std::uint64_t i = 0; i < 40; ++i) peer.chunk({false, 8, i, 0, 8, 1});
  EXPECT_EQ(done.size(), 240U);
  EXPECT_TRUE(failures.empty());
}

TEST_F(RecvSessionTest, MessagesWithoutABufferAreLimitedOverAllLanes) {
  Peer& peer = greet();
  for (std::uint32_t i = 0; i < 32; ++i) peer.chunk({true, 0, i / 16, 0, 0, i % 16});
  EXPECT_TRUE(failures.empty());
  peer.chunk({true, 0, 0, 0, 0, 99});
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].code, Errc::kProtocol);
}

TEST_F(RecvSessionTest, TagsAboveTheLimitFailTheSessionByName) {
  Peer& peer = greet(hello(1));
  std::array<std::byte, 8> buffer{};
  for (std::uint32_t tag = 0; tag < kMaxLanes; ++tag) {
    post(buffer, 0, sessions.size() - 1, tag);
    peer.chunk({false, 8, 0, 0, 8, tag});
    peer.stream.written.clear();
    done.clear();
  }
  EXPECT_TRUE(failures.empty());
  post(buffer, 1, sessions.size() - 1, kMaxLanes);
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].code, Errc::kInvalidArgument);
  EXPECT_EQ(describe(sessions.back()->failure_detail()),
            "more than 262144 tags on one connection: set NCCL_NET_SHARED_COMMS=0 and "
            "NCCL_OOB_NET_ENABLE=0 on all hosts");
}

// Tags that a sender may name without buffers: as many as messages may be out without one.
TEST_F(RecvSessionTest, ASenderMayNameFewTagsWithoutBuffers) {
  Peer& peer = greet(hello(1));
  for (std::uint32_t tag = 0; tag < kMaxUnexpected; ++tag) peer.chunk({true, 8, 0, 0, 8, tag});
  EXPECT_TRUE(failures.empty());
  peer.chunk({true, 8, 0, 0, 8, kMaxUnexpected});
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].code, Errc::kProtocol);
}

TEST_F(RecvSessionTest, AByeCountsTheMessagesOfAllLanes) {
  Peer& peer = greet();
  std::array<std::byte, 8> buffer{};
  post(buffer, 1, 0, /*tag=*/1);
  peer.chunk({false, 8, 0, 0, 8, 1});
  peer.chunk({true, 8, 0, 0, 8, 2});
  peer.say(Bye{2});
  EXPECT_TRUE(failures.empty());
  post(buffer, 2, 0, /*tag=*/2);
  EXPECT_EQ(done.back(), (std::pair<std::uint32_t, std::size_t>{2, 8}));
  post(buffer, 3, 0, /*tag=*/3);  // No message can come to it any more.
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].code, Errc::kPeerClosed);

  Peer& liar = greet(hello(6));
  liar.chunk({true, 8, 0, 0, 8, 1});
  liar.say(Bye{2});
  EXPECT_EQ(liar.reason(), Reason::kProtocol);
}

TEST_F(RecvSessionTest, CreditForAWaitingSenderIsSentAtOnceElseOncePerBurst) {
  Peer& peer = greet();
  static_cast<void>(peer.stream.records());
  std::vector<std::byte> buffer(8);
  post(buffer, 1);
  EXPECT_EQ(credit_of(peer), (Credit{1, 0, 0}));
  post(buffer, 2);
  post(buffer, 3);
  EXPECT_EQ(credit_of(peer), std::nullopt);
  peer.chunk({false, 8, 0, 0, 8});
  EXPECT_EQ(credit_of(peer), std::nullopt);
  acceptor->flush();
  EXPECT_EQ(credit_of(peer), (Credit{3, 0, 1}));
  acceptor->flush();
  EXPECT_EQ(credit_of(peer), std::nullopt);
}

TEST_F(RecvSessionTest, CreditUsesTheLastActiveFlowAndIsNeverLost) {
  Peer& zero = greet();
  Peer& one = greet(hello(5, 1, 1));
  static_cast<void>(zero.stream.records());
  static_cast<void>(one.stream.records());
  std::vector<std::byte> buffer(40'000);
  one.chunk({true, 40'000, 0, 0, 40'000});
  post(buffer, 1);
  EXPECT_EQ(credit_of(one), (Credit{1, 40'000, 1}));  // The last flow that received bytes.
  one.stream.full = true;
  post(buffer, 2);
  EXPECT_EQ(credit_of(zero), (Credit{2, 40'000, 1}));
  zero.stream.full = true;
  post(buffer, 3);
  post(buffer, 4);
  acceptor->flush();
  EXPECT_EQ(credit_of(zero), std::nullopt);
  zero.stream.full = false;
  zero.events->on_acked(now, 100);
  acceptor->flush();
  EXPECT_EQ(credit_of(zero), (Credit{4, 40'000, 1}));
  // Credit lost with a flow is sent again on another.
  one.stream.full = false;
  zero.events->on_failed(now, Error{Errc::kTimedOut, 0, ""});
  acceptor->flush();
  EXPECT_EQ(credit_of(one), (Credit{4, 40'000, 1}));
}

// The sender does not wait for it: "When credit is told" in record.h.
TEST_F(RecvSessionTest, CreditForSmallMessagesIsBatched) {
  Peer& peer = greet();
  std::vector<std::byte> buffer(40'000);
  const auto receive = [&](std::uint64_t number, std::uint32_t size, bool wants_receipt = false) {
    post(buffer, static_cast<std::uint32_t>(number));
    peer.chunk({true, size, number, 0, size, 0, wants_receipt});
    acceptor->flush();
    return credit_of(peer);
  };
  const std::optional<Credit> none;
  EXPECT_EQ(receive(0, 8, true), (Credit{1, 8, 1}));
  std::uint64_t next = 1;
  for (; next < 16; ++next) EXPECT_EQ(receive(next, 8), none) << next;
  EXPECT_EQ(receive(next++, 8), (Credit{17, 136, 17})) << "16 messages";
  EXPECT_EQ(receive(next++, 32'768), none);
  EXPECT_EQ(receive(next++, 32'768), (Credit{19, 65'672, 19})) << "half of the allowance";
  EXPECT_EQ(receive(next++, 8), none);
  EXPECT_EQ(receive(next++, 8, true), (Credit{21, 65'688, 21})) << "the sender waits";

  EXPECT_EQ(receive(next++, 8), none);
  peer.say(Ask{});
  acceptor->flush();
  EXPECT_EQ(credit_of(peer), (Credit{22, 65'696, 22}));
  EXPECT_EQ(receive(next++, 8), none);
  peer.say(Ask{});
  acceptor->flush();
  EXPECT_EQ(credit_of(peer), (Credit{23, 65'704, 23}));
  peer.say(Ask{});
  acceptor->flush();
  EXPECT_EQ(credit_of(peer), none) << "there is nothing to tell";
  post(buffer, 99);
  acceptor->flush();
  EXPECT_EQ(credit_of(peer), (Credit{24, 65'704, 23})) << "but now";
  post(buffer, 100);
  acceptor->flush();
  EXPECT_EQ(credit_of(peer), none) << "an ask is answered once";

  // The sender continues with large messages, and may wait for their buffers.
  peer.chunk({false, 4096, next, 0, 32'769});
  acceptor->flush();
  EXPECT_EQ(credit_of(peer), (Credit{25, 65'704, 23}));
}

TEST_F(RecvSessionTest, SenderIsToldAtLeastHalfOfTheBuffersForLargeMessages) {
  Peer& peer = greet();
  static_cast<void>(peer.stream.records());
  std::array<std::vector<std::byte>, 12> buffers;
  for (auto& buffer : buffers) buffer.resize(50'000);
  auto post_one = [&, next = 0U]() mutable {
    post(buffers[next], next);
    ++next;
    acceptor->flush();
    return credit_of(peer);
  };
  const std::optional<Credit> none;
  EXPECT_EQ(post_one(), (Credit{1, 0, 0})) << "the only one";
  EXPECT_EQ(post_one(), none) << "it knows of half";
  EXPECT_EQ(post_one(), (Credit{3, 0, 0}));
  for (int i = 0; i < 3; ++i) EXPECT_EQ(post_one(), none) << i;
  EXPECT_EQ(post_one(), (Credit{7, 0, 0}));
  EXPECT_EQ(post_one(), none);
  // The sender uses them up.
  for (std::uint64_t i = 0; i < 6; ++i) {
    peer.chunk({false, 50'000, i, 0, 50'000});
    acceptor->flush();
    EXPECT_EQ(credit_of(peer), none) << i;
  }
  peer.say(Chunk{false, 50'000, 6, 0, 50'000});
  acceptor->flush();
  EXPECT_EQ(credit_of(peer), (Credit{8, 0, 6}));
}

}  // namespace
}  // namespace ztcp::msg
