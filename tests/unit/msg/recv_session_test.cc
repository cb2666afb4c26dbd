// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Receiving messages, once the sender is admitted.
#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/msg/acceptor_fixture.h"
#include "transport/msg/reason.h"

namespace ztcp::msg {
namespace {

using RecvSessionTest = AcceptorTest;

TEST_F(RecvSessionTest, BytesThatComeBeforeTheirBufferAreKeptAndReleased) {
  Peer& peer = greet();
  peer.chunk({true, 100, 0, 0, 100}, std::byte{1});
  peer.chunk({true, 8192, 1, 0, 20'000}, std::byte{2});
  peer.say(Chunk{true, 8192, 1, 8192, 20'000});
  peer.hear(std::vector<std::byte>(5000, std::byte{3}));  // In flight while the buffer is posted.
  EXPECT_EQ(sessions[0]->unposted_bytes(), 100U + 16'384U);

  std::vector<std::byte> small(100);
  post(small, 10);
  EXPECT_EQ(done, (Done{{10, 100}}));
  EXPECT_EQ(small, std::vector<std::byte>(100, std::byte{1}));

  std::vector<std::byte> large(20'000, std::byte{0xee});
  post(large, 11);
  EXPECT_EQ(sessions[0]->unposted_bytes(), 0U);
  // Exactly the received bytes, no more.
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

// A stream that places bytes directly may do so in any order.
TEST_F(RecvSessionTest, OnlyUnpolledBuffersAreOfferedToStreams) {
  Peer& peer = greet();
  std::vector<std::byte> buffer(200'000);
  post(buffer, 10, 0, 0, /*is_polled=*/false);
  EXPECT_TRUE(peer.events->place().unpolled().empty()) << "between records";
  peer.say(Chunk{false, 147'456, 0, 0, 200'000});
  ASSERT_EQ(peer.events->place().unpolled().size(), 147'456U);
  EXPECT_EQ(peer.events->place().bytes.data(), buffer.data());
  peer.events->on_placed(now, 60'000);
  EXPECT_EQ(peer.events->place().bytes.data(), buffer.data() + 60'000);
  peer.events->on_placed(now, 87'456);
  peer.chunk({false, 52'544, 0, 147'456, 200'000});
  EXPECT_EQ(done, (Done{{10, 200'000}}));

  post(buffer, 11, 0, 0, /*is_polled=*/true);
  peer.say(Chunk{false, 200'000, 1, 0, 200'000});
  EXPECT_TRUE(peer.events->place().unpolled().empty());
}

TEST_F(RecvSessionTest, APeerBeyondTheAllowanceIsRefusedWithBothNumbers) {
  Peer& peer = greet();
  peer.chunk({true, 100'000, 0, 0, 100'000});
  peer.chunk({true, 31'072, 1, 0, 31'072});  // 131072: the whole allowance.
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

TEST_F(RecvSessionTest, ATruncatedMessageReportsBothSizes) {
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
    // The peer gets time to read it, its further bytes are dropped, and then the stream ends.
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
  peer.chunk({false, 12'288, 0, 0, 12'288}, std::byte{3});  // The message is finished.
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

// All but the oldest may be done and NCCL ready to post again: messages beyond 32 from the oldest
// wait, and the sender is not told of them.
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

}  // namespace
}  // namespace ztcp::msg
