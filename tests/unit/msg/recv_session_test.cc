// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What a session does with messages once its sender is in.
#include <algorithm>
#include <array>

#include <gtest/gtest.h>

#include "tests/unit/msg/acceptor_fixture.h"
#include "transport/msg/reason.h"

namespace ztcp::msg {
namespace {

using RecvSessionTest = AcceptorTest;

// --- Messages ----------------------------------------------------------------------------------

TEST_F(RecvSessionTest, BytesThatComeBeforeTheirBufferAreKeptAndReleased) {
  Peer& peer = greet();
  peer.chunk({true, 100, 0, 0, 100}, std::byte{1});
  peer.chunk({true, 8192, 1, 0, 20'000}, std::byte{2});
  peer.say(Chunk{true, 8192, 1, 8192, 20'000});
  peer.hear(std::vector<std::byte>(5000, std::byte{3}));  // Under way while the buffer is posted.
  EXPECT_EQ(sessions[0]->unposted_bytes(), 100U + 16'384U);

  std::vector<std::byte> small(100);
  post(small, 10);
  EXPECT_EQ(done, (Done{{10, 100}}));
  EXPECT_EQ(small, std::vector<std::byte>(100, std::byte{1}));

  std::vector<std::byte> large(20'000, std::byte{0xee});
  post(large, 11);
  EXPECT_EQ(sessions[0]->unposted_bytes(), 0U);
  // Exactly what came, no more.
  EXPECT_EQ(large[8191], std::byte{2});
  EXPECT_EQ(large[8192 + 4999], std::byte{3});
  EXPECT_EQ(large[8192 + 5000], std::byte{0xee});
  sessions[0]->on_ask();
  acceptor->flush();
  EXPECT_EQ(*credit_of(peer), (Credit{2, 100 + 8192 + 4096, 1}));

  peer.hear(std::vector<std::byte>(3192, std::byte{4}));
  peer.chunk({false, 20'000 - 16'384, 1, 16'384, 20'000}, std::byte{5});
  EXPECT_EQ(done.back(), (std::pair<std::uint32_t, std::size_t>{11, 20'000}));
  EXPECT_EQ(large[16'383], std::byte{4});
  EXPECT_EQ(large[19'999], std::byte{5});
  peer.say(Ask{});
  acceptor->flush();
  EXPECT_EQ(*credit_of(peer), (Credit{2, 100 + 16'384, 2}));  // The last chunk was not eager.
}

// A stream that puts bytes in their place does so in whatever order.
TEST_F(RecvSessionTest, OnlyBuffersThatNobodyPollsAreGivenAway) {
  Peer& peer = greet();
  std::vector<std::byte> buffer(200'000);
  post(buffer, 10, 0, 0, /*is_polled=*/false);
  EXPECT_TRUE(peer.events->place().empty()) << "between records";
  peer.say(Chunk{false, 147'456, 0, 0, 200'000});
  ASSERT_EQ(peer.events->place().size(), 147'456U);
  EXPECT_EQ(peer.events->place().data(), buffer.data());
  peer.events->on_placed(now, 60'000);
  EXPECT_EQ(peer.events->place().data(), buffer.data() + 60'000);
  peer.events->on_placed(now, 87'456);
  peer.chunk({false, 52'544, 0, 147'456, 200'000});
  EXPECT_EQ(done, (Done{{10, 200'000}}));

  post(buffer, 11, 0, 0, /*is_polled=*/true);
  peer.say(Chunk{false, 200'000, 1, 0, 200'000});
  EXPECT_TRUE(peer.events->place().empty());
}

TEST_F(RecvSessionTest, APeerBeyondTheAllowanceIsRefusedWithBothNumbers) {
  Peer& peer = greet();
  peer.chunk({true, 100'000, 0, 0, 100'000});
  peer.chunk({true, 31'072, 1, 0, 31'072});  // 131072: all of it.
  EXPECT_TRUE(failures.empty());
  peer.chunk({true, 1, 2, 0, 1});
  const auto refusal = peer.refusal();
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->reason, Reason::kAllowance);
  EXPECT_EQ(refusal->ours, 131'072U);
  EXPECT_EQ(refusal->theirs, 131'073U);
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].code, Errc::kProtocol);
}

TEST_F(RecvSessionTest, ATruncatedMessageTellsBothSizes) {
  for (const bool posted_first : {true, false}) {
    failures.clear();
    Peer& peer = greet(hello(posted_first ? 1 : 2));
    std::vector<std::byte> buffer(100, std::byte{0xee});
    if (posted_first) {
      post(buffer, 1, sessions.size() - 1);
    }
    peer.chunk({true, 101, 0, 0, 101});
    if (!posted_first) {
      post(buffer, 1, sessions.size() - 1);
    }
    const auto refusal = peer.refusal();
    ASSERT_TRUE(refusal);
    EXPECT_EQ(refusal->reason, Reason::kTruncated);
    EXPECT_EQ(refusal->ours, 100U);
    EXPECT_EQ(refusal->theirs, 101U);
    ASSERT_EQ(failures.size(), 1U);
    EXPECT_EQ(failures[0].code, Errc::kTruncated);
    EXPECT_EQ(sessions.back()->failure_detail().theirs, 101U);
    EXPECT_EQ(buffer, std::vector<std::byte>(100, std::byte{0xee}));
    // The peer gets time to read it, its bytes go nowhere, and then the stream ends.
    EXPECT_FALSE(peer.stream.is_left());
    peer.chunk({true, 5000, 1, 0, 5000});
    acceptor->on_timers(now += std::chrono::seconds(2));
    EXPECT_TRUE(peer.stream.closed);
  }
}

TEST_F(RecvSessionTest, NothingIsWrittenTwice) {
  Peer& peer = greet();
  std::vector<std::byte> buffer(3 * 4096, std::byte{0xee});
  post(buffer, 1);
  peer.chunk({false, 4096, 0, 4096, 12'288}, std::byte{1});
  peer.chunk({false, 12'288, 0, 0, 12'288}, std::byte{2});  // Its middle unit is held already.
  EXPECT_EQ(buffer[4095], std::byte{2});
  EXPECT_EQ(buffer[4096], std::byte{1});
  EXPECT_EQ(buffer[8191], std::byte{1});
  EXPECT_EQ(buffer[8192], std::byte{2});
  EXPECT_EQ(done, (Done{{1, 12'288}}));
  buffer.assign(buffer.size(), std::byte{0xdd});
  peer.chunk({false, 12'288, 0, 0, 12'288}, std::byte{3});  // Of a finished message.
  EXPECT_EQ(buffer, std::vector<std::byte>(buffer.size(), std::byte{0xdd}));
  EXPECT_EQ(done.size(), 1U);
  EXPECT_TRUE(failures.empty());
}

TEST_F(RecvSessionTest, MessagesMayFinishOutOfOrderButAreCountedInOrder) {
  Peer& peer = greet();
  std::vector<std::byte> a(10);
  std::vector<std::byte> b(20);
  post(a, 1);
  post(b, 2);
  peer.chunk({false, 20, 1, 0, 20});
  EXPECT_EQ(done, (Done{{2, 20}}));
  peer.say(Ask{});
  acceptor->flush();
  EXPECT_EQ(*credit_of(peer), (Credit{2, 0, 0}));
  peer.chunk({false, 10, 0, 0, 10});
  EXPECT_EQ(done, (Done{{2, 20}, {1, 10}}));
  peer.say(Ask{});
  acceptor->flush();
  EXPECT_EQ(*credit_of(peer), (Credit{2, 0, 2}));
}

// All but the oldest may be done and NCCL ready to post again: what is beyond 32 from the oldest
// waits, and the sender does not hear of it.
TEST_F(RecvSessionTest, TheWindowBeginsWithTheOldestMessage) {
  Peer& peer = greet();
  std::array<std::array<std::byte, 8>, 34> buffers{};
  for (std::uint32_t i = 0; i < 32; ++i) post(buffers[i], i);
  for (std::uint64_t i = 1; i < 32; ++i) peer.chunk({false, 8, i, 0, 8});
  EXPECT_EQ(done.size(), 31U);
  post(buffers[32], 32);
  post(buffers[33], 33);
  acceptor->flush();
  EXPECT_EQ(*credit_of(peer), (Credit{32, 0, 0}));
  peer.chunk({false, 8, 0, 0, 8}, std::byte{0x22});
  EXPECT_EQ(done.size(), 32U);
  EXPECT_EQ(buffers[0][7], std::byte{0x22});
  acceptor->flush();
  EXPECT_EQ(*credit_of(peer), (Credit{34, 0, 32}));
  peer.chunk({false, 8, 32, 0, 8}, std::byte{0x33});
  EXPECT_EQ(done.back(), (std::pair<std::uint32_t, std::size_t>{32, 8}));
  EXPECT_EQ(buffers[32][7], std::byte{0x33});
  peer.chunk({false, 8, 33, 0, 8}, std::byte{0x44});
  EXPECT_EQ(buffers[33][7], std::byte{0x44});
}

TEST_F(RecvSessionTest, EmptyMessagesCompletePostedOrNot) {
  Peer& peer = greet();
  peer.chunk({true, 0, 0, 0, 0});
  post({}, 7);
  EXPECT_EQ(done, (Done{{7, 0}}));
  std::vector<std::byte> buffer(8);
  post(buffer, 8);
  peer.chunk({false, 0, 1, 0, 0});
  EXPECT_EQ(done, (Done{{7, 0}, {8, 0}}));
}

struct Breach {
  const char* name;
  std::vector<Chunk> chunks;
};
class BreachTest : public AcceptorTest, public testing::WithParamInterface<Breach> {};

TEST_P(BreachTest, FailsTheSession) {
  Peer& peer = greet();
  std::vector<std::byte> buffer(100'000);
  post(buffer, 1);
  for (const Chunk& chunk : GetParam().chunks) {
    EXPECT_TRUE(failures.empty());
    peer.chunk(chunk);
  }
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].code, Errc::kProtocol);
  EXPECT_EQ(peer.reason(), Reason::kProtocol);
}

INSTANTIATE_TEST_SUITE_P(
    Rules, BreachTest,
    testing::Values(Breach{"plain_without_buffer", {{false, 8, 1, 0, 8}}},
                    Breach{"outside_the_window", {{true, 8, 32, 0, 8}}},
                    Breach{"far_outside", {{true, 8, ~std::uint64_t{0}, 0, 8}}},
                    Breach{"outside_a_new_lane", {{true, 8, 32, 0, 8, 3}}},
                    Breach{"plain_in_a_new_lane", {{false, 8, 0, 0, 8, 3}}},
                    Breach{"sizes_differ",
                           {{false, 4096, 0, 0, 8192}, {false, 4096, 0, 4096, 9000}}},
                    Breach{"unaligned", {{false, 100, 0, 100, 8192}}}),
    [](const auto& test) { return test.param.name; });

// --- Lanes --------------------------------------------------------------------------------------

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

TEST_F(RecvSessionTest, OnlyLanesThatChangedAreTold) {
  Peer& peer = greet();
  std::vector<std::byte> buffer(8);
  post(buffer, 1, 0, /*tag=*/1);
  post(buffer, 2, 0, /*tag=*/2);
  acceptor->flush();
  EXPECT_EQ(credits_of(peer), (std::vector<Credit>{{1, 0, 0, 1}, {1, 0, 0, 2}}));
  peer.chunk({false, 8, 0, 0, 8, 2, /*wants_receipt=*/true});
  acceptor->flush();
  EXPECT_EQ(credits_of(peer), (std::vector<Credit>{{1, 0, 1, 2}}));
  // But all, once a flow was lost that may have carried the newest.
  greet(hello(5, 1, 1));
  peer.events->on_failed(now, Error{Errc::kTimedOut, 0, ""});
  static_cast<void>(peers.back().stream.records());
  acceptor->flush();
  EXPECT_EQ(credits_of(peers.back()), (std::vector<Credit>{{1, 0, 0, 1}, {1, 0, 1, 2}}));
}

TEST_F(RecvSessionTest, AWindowIsALanesOwn) {
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

TEST_F(RecvSessionTest, TagsWithoutEndFailTheSessionByName) {
  for (const bool by_peer : {true, false}) {
    failures.clear();
    Peer& peer = greet(hello(by_peer ? 1 : 2));
    std::array<std::byte, 8> buffer{};
    for (std::uint32_t tag = 0; tag < 128; ++tag) post(buffer, tag, sessions.size() - 1, tag);
    EXPECT_TRUE(failures.empty());
    if (by_peer)
      peer.chunk({true, 8, 0, 0, 8, 128});
    else
      post(buffer, 128, sessions.size() - 1, 128);
    ASSERT_EQ(failures.size(), 1U);
    EXPECT_EQ(failures[0].code, Errc::kInvalidArgument);
    EXPECT_EQ(describe(sessions.back()->failure_detail()),
              "more than 128 tags on one connection: set NCCL_NET_SHARED_COMMS=0 on all hosts");
    EXPECT_EQ(peer.reason(), Reason::kTooManyTags);
  }
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
  post(buffer, 3, 0, /*tag=*/3);  // To which no message can come any more.
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].code, Errc::kPeerClosed);

  Peer& liar = greet(hello(6));
  liar.chunk({true, 8, 0, 0, 8, 1});
  liar.say(Bye{2});
  EXPECT_EQ(liar.reason(), Reason::kProtocol);
}

// --- Credit ------------------------------------------------------------------------------------

TEST_F(RecvSessionTest, APostTheSenderMayWaitForIsToldAtOnceOthersOncePerBurst) {
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

TEST_F(RecvSessionTest, CreditGoesWhereItIsHeardAndIsNeverLost) {
  Peer& zero = greet();
  Peer& one = greet(hello(5, 1, 1));
  static_cast<void>(zero.stream.records());
  static_cast<void>(one.stream.records());
  std::vector<std::byte> buffer(40'000);
  one.chunk({true, 40'000, 0, 0, 40'000});
  post(buffer, 1);
  EXPECT_EQ(credit_of(one), (Credit{1, 40'000, 1}));  // The last flow that was heard.
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
  // Whatever died with a flow is said again on another.
  one.stream.full = false;
  zero.events->on_failed(now, Error{Errc::kTimedOut, 0, ""});
  acceptor->flush();
  EXPECT_EQ(credit_of(one), (Credit{4, 40'000, 1}));
}

// Whose sender does not wait for it: "When credit is told" in record.h.
TEST_F(RecvSessionTest, NewsOfSmallMessagesWaitUntilTheyAreWorthARecord) {
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

  // The sender goes on to large messages, and may wait for the buffers of those.
  peer.chunk({false, 4096, next, 0, 32'769});
  acceptor->flush();
  EXPECT_EQ(credit_of(peer), (Credit{25, 65'704, 23}));
}

TEST_F(RecvSessionTest, OfLargeMessagesTheSenderKnowsHalfOfTheBuffers) {
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
  // It uses them up.
  for (std::uint64_t i = 0; i < 6; ++i) {
    peer.chunk({false, 50'000, i, 0, 50'000});
    acceptor->flush();
    EXPECT_EQ(credit_of(peer), none) << i;
  }
  peer.say(Chunk{false, 50'000, 6, 0, 50'000});
  acceptor->flush();
  EXPECT_EQ(credit_of(peer), (Credit{8, 0, 6}));
}

// --- Ends --------------------------------------------------------------------------------------

TEST_F(RecvSessionTest, ClosesInOrderFromEitherSide) {
  Peer& peer = greet();
  peer.say(Bye{0});
  peer.events->on_closed(now);
  EXPECT_TRUE(peer.stream.closed);
  EXPECT_TRUE(failures.empty());
  sessions[0]->close();
  EXPECT_EQ(closed, 1);

  Peer& other = greet(hello(6));
  static_cast<void>(other.stream.records());
  sessions[1]->close();
  const auto records = other.stream.records();
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(decode_bye(records[0].header, records[0].body)->messages, 0U);
  EXPECT_TRUE(other.stream.closed);
  EXPECT_EQ(closed, 2);
}

TEST_F(RecvSessionTest, MessagesHeldAtTheByeCanStillBeReceived) {
  Peer& peer = greet();
  peer.chunk({true, 5, 0, 0, 5}, std::byte{9});
  peer.say(Bye{1});
  peer.events->on_closed(now);
  std::vector<std::byte> buffer(5);
  post(buffer, 1);
  EXPECT_EQ(done, (Done{{1, 5}}));
  EXPECT_EQ(buffer[4], std::byte{9});
  post(buffer, 2);  // But no more than there were.
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].code, Errc::kPeerClosed);
}

TEST_F(RecvSessionTest, ReceivesOutstandingAtTheByeFail) {
  Peer& peer = greet();
  std::vector<std::byte> buffer(5);
  post(buffer, 1);
  peer.say(Bye{0});
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].code, Errc::kPeerClosed);
}

// --- The end of a process -----------------------------------------------------------------------

TEST_F(RecvSessionTest, LeavesWithAByeAndWritesNoMemoryAfterwards) {
  Peer& peer = greet();
  std::vector<std::byte> buffer(5, std::byte{0xee});
  post(buffer, 1);
  static_cast<void>(peer.stream.records());
  sessions[0]->leave(now);
  const auto records = peer.stream.records();
  ASSERT_EQ(records.size(), 1U);
  EXPECT_TRUE(decode_bye(records[0].header, records[0].body)->process_ends);
  EXPECT_FALSE(peer.stream.is_left()) << "what is on its way would be answered with RST";
  peer.chunk({false, 5, 0, 0, 5}, std::byte{9});
  EXPECT_EQ(buffer[0], std::byte{0xee});
  EXPECT_TRUE(done.empty());
  EXPECT_TRUE(failures.empty());
}

TEST_F(RecvSessionTest, FailsAtOnceWhenANewHelloSaysThatTheSendersProcessEnds) {
  Peer& peer = greet();
  std::vector<std::byte> buffer(5);
  post(buffer, 1);
  peer.events->on_failed(now, Error{Errc::kPeerClosed, 0, "reset"});
  EXPECT_TRUE(failures.empty()) << "it might be dialled again";
  Hello last = hello(5, 2);
  last.process_ends = true;
  Peer& messenger = connect();
  messenger.preamble();
  messenger.say(last);
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0].code, Errc::kPeerClosed);
  EXPECT_EQ(sessions[0]->failure_detail().reason, Reason::kProcessEnded);
  EXPECT_EQ(messenger.reason(), Reason::kUnknownSession);
}

TEST_F(RecvSessionTest, AHelloOfAnEndingProcessMakesNoSession) {
  Hello last = hello();
  last.process_ends = true;
  Peer& peer = connect();
  peer.preamble();
  peer.say(last);
  EXPECT_TRUE(sessions.empty());
  EXPECT_EQ(peer.reason(), Reason::kUnknownSession);
}

TEST_F(RecvSessionTest, SaysThatTheSendersProcessEnded) {
  Peer& peer = greet();
  std::vector<std::byte> buffer(5);
  post(buffer, 1);
  peer.say(Bye{0, /*process_ends=*/true});
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(sessions[0]->failure_detail().reason, Reason::kProcessEnded);
}

TEST_F(RecvSessionTest, FinWithoutByeIsADeadFlow) {
  Peer& peer = greet();
  peer.events->on_closed(now);
  EXPECT_TRUE(peer.stream.aborted);
  EXPECT_TRUE(failures.empty());
  EXPECT_TRUE(accept_of(greet(hello(5, 2))));
}

TEST_F(RecvSessionTest, SessionsMayOutliveTheirAcceptor) {
  Peer& peer = greet();
  acceptor.reset();
  EXPECT_TRUE(peer.stream.aborted);
  sessions[0]->close();
  sessions.clear();
}

}  // namespace
}  // namespace ztcp::msg
