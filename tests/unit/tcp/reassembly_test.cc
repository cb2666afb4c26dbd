// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/reassembly.h"

#include <array>
#include <deque>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <vector>

#include <gtest/gtest.h>

namespace ztcp::tcp {
namespace {

constexpr std::uint32_t kBase = 0xffffff00;  // Wraps inside the tests' range.

class ReassemblyTest : public testing::Test {
 protected:
  explicit ReassemblyTest(std::size_t max_bytes = 16U << 20) : held(max_bytes, 8192), set(held) {}

  static SeqNum seq(std::uint32_t i) { return SeqNum(kBase + i); }
  static std::byte byte_at(std::uint32_t i) { return static_cast<std::byte>(i * 7 + i / 256); }

  // A segment of stream bytes [from, to), with junk in front of its payload.
  Reassembly::Outcome insert(std::uint32_t from, std::uint32_t to) {
    auto& bytes = memory.emplace_back(10 + to - from, std::byte{0xee});
    for (std::uint32_t i = from; i < to; ++i) bytes[10 + i - from] = byte_at(i);
    RxFrame frame;
    frame.head = bytes;
    frame.charge_bytes = 2048;
    frame.handle = &bytes;
    const auto outcome = set.insert(frame, seq(from), 10, to - from, duplicate);
    EXPECT_EQ(frame.kept, outcome == Reassembly::Outcome::kHeld);
    return outcome;
  }
  std::uint32_t deliver(std::uint32_t from) {
    std::uint32_t at = from;
    const SeqNum end = set.deliver(
        seq(from), [&](const RxFrame& frame, std::uint32_t offset, std::uint32_t length) {
          for (std::uint32_t i = 0; i < length; ++i, ++at)
            EXPECT_EQ(frame.head[offset + i], byte_at(at)) << at;
          return true;
        });
    EXPECT_EQ(end, seq(at));
    return at;
  }
  std::size_t take_released() {
    std::array<RxFrame, 256> out;
    return held.take_released(out);
  }
  std::vector<std::pair<std::uint32_t, std::uint32_t>> blocks() {
    std::array<wire::SackBlock, 4> out;
    std::vector<std::pair<std::uint32_t, std::uint32_t>> result;
    const std::size_t count = set.take_sack_blocks(out, duplicate);
    for (std::size_t i = 0; i < count; ++i)
      result.emplace_back(out[i].begin - kBase, out[i].end - kBase);
    return result;
  }
  using Blocks = std::vector<std::pair<std::uint32_t, std::uint32_t>>;

  HeldFrames held;
  Reassembly set;
  wire::SackBlock duplicate;
  std::deque<std::vector<std::byte>> memory;
};

TEST_F(ReassemblyTest, HoldsUntilTheHoleIsFilled) {
  EXPECT_EQ(insert(100, 200), Reassembly::Outcome::kHeld);
  EXPECT_EQ(insert(200, 300), Reassembly::Outcome::kHeld);
  EXPECT_EQ(deliver(50), 50U) << "not yet";
  EXPECT_EQ(held.held_frames(), 2U);
  EXPECT_EQ(deliver(100), 300U);
  EXPECT_TRUE(set.empty());
  EXPECT_EQ(held.held_bytes(), 0U);
  EXPECT_EQ(take_released(), 2U);
}

TEST_F(ReassemblyTest, TrimsBytesThatAreHeldAlready) {
  insert(100, 200);
  EXPECT_EQ(insert(150, 250), Reassembly::Outcome::kHeld);
  EXPECT_EQ(duplicate, (wire::SackBlock{kBase + 150, kBase + 200}));
  EXPECT_EQ(insert(50, 120), Reassembly::Outcome::kHeld);
  EXPECT_EQ(duplicate, (wire::SackBlock{kBase + 100, kBase + 120}));
  EXPECT_EQ(insert(60, 240), Reassembly::Outcome::kDuplicate);
  EXPECT_EQ(set.range_count(), 1U);
  EXPECT_EQ(deliver(50), 250U);
}

TEST_F(ReassemblyTest, OneFrameMayReplaceSeveral) {
  insert(100, 110);
  insert(120, 130);
  insert(140, 160);
  EXPECT_EQ(insert(90, 150), Reassembly::Outcome::kHeld);
  EXPECT_EQ(set.range_count(), 1U);
  EXPECT_EQ(take_released(), 2U);
  EXPECT_EQ(deliver(90), 160U);
}

TEST_F(ReassemblyTest, DeliversOnlyNewBytes) {
  insert(100, 200);
  insert(250, 300);
  EXPECT_EQ(deliver(180), 200U) << "the in-order segment overlapped";
  EXPECT_EQ(deliver(275), 300U);
  EXPECT_EQ(held.held_frames(), 0U);
}

// RFC 2018 section 4: the block of the segment that caused the ACK comes first, then the ones
// reported most recently.
TEST_F(ReassemblyTest, ReportsNewestFirst) {
  insert(100, 110);
  insert(200, 210);
  insert(300, 310);
  insert(400, 410);
  insert(500, 510);
  EXPECT_EQ(blocks(), (Blocks{{500, 510}, {400, 410}, {300, 310}, {200, 210}}));
  EXPECT_TRUE(set.has_unreported());
  EXPECT_EQ(blocks(), (Blocks{{100, 110}, {500, 510}, {400, 410}, {300, 310}}))
      << "blocks not yet reported first, then the newest again";
  EXPECT_FALSE(set.has_unreported());
  insert(210, 220);
  EXPECT_EQ(blocks(), (Blocks{{200, 220}, {100, 110}, {500, 510}, {400, 410}}))
      << "the new block, then the one reported only once";
  insert(300, 310);
  EXPECT_EQ(blocks().front(), (std::pair<std::uint32_t, std::uint32_t>{300, 310}))
      << "a duplicate is reported first, too";
}

// Any ACK may be lost.
TEST_F(ReassemblyTest, ReportsEachRangeInSeveralAcks) {
  constexpr std::uint32_t kRanges = 40;
  std::map<std::uint32_t, int> told;
  for (std::uint32_t i = 0; i < kRanges; ++i) {
    insert(100 + 20 * i, 110 + 20 * i);
    for (const auto& block : blocks()) ++told[block.first];
  }
  for (std::uint32_t i = 0; i + Reassembly::kEnoughAcks < kRanges; ++i)
    EXPECT_GE(told[100 + 20 * i], int{Reassembly::kEnoughAcks}) << i;
}

// RFC 2883 section 4.2: otherwise the peer takes the duplicate for new data.
TEST_F(ReassemblyTest, TheRangeAroundADuplicateLeads) {
  insert(100, 300);
  insert(150, 250);
  EXPECT_EQ(duplicate, (wire::SackBlock{kBase + 150, kBase + 250}));
  const wire::SackBlock twice = duplicate;
  insert(400, 500);
  insert(600, 700);
  duplicate = twice;
  EXPECT_EQ(blocks(), (Blocks{{100, 300}, {600, 700}, {400, 500}}));
}

// A burst that overran a queue arrives with a hole after every frame. As much as the frame limit
// allows is kept, in any order of arrival.
TEST_F(ReassemblyTest, OnlyMemoryBoundsTheRanges) {
  constexpr std::uint32_t kHalf = 1000;
  for (std::uint32_t i = 0; i < kHalf; ++i)
    ASSERT_EQ(insert(10 + 20 * i, 20 + 20 * i), Reassembly::Outcome::kHeld) << i;
  for (std::uint32_t i = 2 * kHalf - 1; i >= kHalf; --i)
    ASSERT_EQ(insert(10 + 20 * i, 20 + 20 * i), Reassembly::Outcome::kHeld) << i;
  EXPECT_EQ(set.range_count(), 2 * kHalf);
  // All are reported, in few ACKs.
  std::set<std::uint32_t> told;
  for (std::uint32_t ack = 0; set.has_unreported(); ++ack) {
    ASSERT_LT(ack, kHalf);
    for (const auto& block : blocks()) told.insert(block.first);
  }
  EXPECT_EQ(told.size(), 2 * kHalf);
  // The holes are filled from the back.
  for (std::uint32_t i = 2 * kHalf - 1; i > 0; --i) insert(20 * i, 10 + 20 * i);
  EXPECT_EQ(set.range_count(), 1U);
  EXPECT_EQ(deliver(10), 40 * kHalf);
  EXPECT_EQ(held.held_bytes(), 0U);
}

class ReassemblyBudget : public ReassemblyTest {
 protected:
  ReassemblyBudget() : ReassemblyTest(20 * 2048) {}
};

TEST_F(ReassemblyBudget, FramesAreChargedByTrueSize) {
  for (std::uint32_t i = 0; i < 10; ++i)
    ASSERT_EQ(insert(10 + 2 * i, 11 + 2 * i), Reassembly::Outcome::kHeld);
  EXPECT_EQ(insert(100, 200), Reassembly::Outcome::kNoMemory);
  EXPECT_EQ(held.held_bytes(), 10U * 2048);
  set.clear();
  EXPECT_EQ(take_released(), 10U);
  EXPECT_EQ(insert(100, 200), Reassembly::Outcome::kHeld);
}

// Connections with many losses, one after the other: each may hold as much as remains, so that
// there is always something left for the next.
class ReassemblyShares : public testing::Test {
 protected:
  static constexpr std::uint32_t kFrames = 128;
  struct Connection {
    explicit Connection(HeldFrames& held) : set(held) {}
    Reassembly set;
    std::uint32_t next = 100;  // Byte 0 never comes.
  };

  bool take_one(Connection& connection) {
    RxFrame frame;
    frame.head = bytes;
    frame.charge_bytes = 2048;
    wire::SackBlock duplicate;
    const auto outcome = connection.set.insert(frame, SeqNum(connection.next), 0, 10, duplicate);
    if (outcome == Reassembly::Outcome::kHeld) connection.next += 10;
    return outcome == Reassembly::Outcome::kHeld;
  }
  std::uint32_t take_all(Connection& connection) {
    std::uint32_t taken = 0;
    while (take_one(connection)) ++taken;
    return taken;
  }

  std::array<std::byte, 10> bytes{};
  HeldFrames held{kFrames * 2048, kFrames};
};

TEST_F(ReassemblyShares, ALossyConnectionLeavesRoomForOthers) {
  std::array<std::unique_ptr<Connection>, 7> connections;
  std::uint32_t expected = kFrames / 2;
  for (auto& connection : connections) {
    connection = std::make_unique<Connection>(held);
    EXPECT_EQ(take_all(*connection), expected);
    expected /= 2;
  }
  // Memory that one gives back is available to all, and its own share is restored.
  connections[0]->set.clear();
  EXPECT_EQ(take_all(*connections[6]), 0U) << "the link does not have them back";
  std::array<RxFrame, kFrames> released;
  EXPECT_EQ(held.take_released(released), kFrames / 2);
  EXPECT_GT(take_all(*connections[6]), 1U);
  EXPECT_GT(take_all(*connections[0]), 1U);
}

TEST_F(ReassemblyShares, LossyConnectionsAreEqual) {
  std::array<std::unique_ptr<Connection>, 7> connections;
  for (auto& connection : connections) connection = std::make_unique<Connection>(held);
  bool any = true;
  while (any) {
    any = false;
    for (auto& connection : connections) any |= take_one(*connection);
  }
  for (const auto& connection : connections)
    EXPECT_EQ(connection->next, 100 + 10 * kFrames / (connections.size() + 1));
}

// Arrivals in any order and cut in any way: every byte is delivered once and every frame is
// returned.
TEST_F(ReassemblyTest, RandomArrivalsAreDeliveredCompletely) {
  std::mt19937 engine(11);
  const auto random = [&] { return static_cast<std::uint32_t>(engine()); };
  constexpr std::uint32_t kEnd = 3000;
  for (int round = 0; round < 200; ++round) {
    std::uint32_t next = 0;
    std::size_t kept = 0;
    std::size_t back = 0;
    while (next < kEnd) {
      const std::uint32_t from = next + 1 + random() % 400;
      const std::uint32_t to = from + 1 + random() % 100;
      if (insert(from, to) == Reassembly::Outcome::kHeld) ++kept;
      if (random() % 4 == 0) next = deliver(next + 1 + random() % 60);
      back += take_released();
    }
    set.clear();
    EXPECT_EQ(back + take_released(), kept);
    EXPECT_EQ(held.held_bytes(), 0U);
    memory.clear();
  }
}

}  // namespace
}  // namespace ztcp::tcp
