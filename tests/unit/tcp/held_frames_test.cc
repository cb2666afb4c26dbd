// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/held_frames.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include <gtest/gtest.h>

namespace ztcp::tcp {
namespace {

constexpr std::uint32_t kNone = HeldFrames::kNone;

class HeldFramesTest : public testing::Test {
 protected:
  RxFrame frame(std::uint32_t charge_bytes = 1000) {
    RxFrame frame;
    frame.handle = reinterpret_cast<void*>(++handles);
    frame.charge_bytes = charge_bytes;
    return frame;
  }
  std::vector<void*> released() {
    std::vector<void*> handles_back;
    std::array<RxFrame, 4> some;
    while (const std::size_t count = held.take_released(some))
      for (std::size_t i = 0; i < count; ++i) {
        EXPECT_FALSE(some[i].kept);
        handles_back.push_back(some[i].handle);
      }
    return handles_back;
  }

  HeldFrames held{8000, 20};
  std::size_t share = 0;
  std::uintptr_t handles = 0;
};

TEST_F(HeldFramesTest, LendsTheShownFrameSeveralTimes) {
  RxFrame shown = frame();
  EXPECT_EQ(held.lend(), kNone) << "nothing is shown";
  held.show(shown);
  EXPECT_FALSE(shown.kept);
  const std::uint32_t first = held.lend();
  const std::uint32_t second = held.lend();
  ASSERT_NE(first, kNone);
  ASSERT_NE(second, kNone);
  EXPECT_TRUE(shown.kept);
  EXPECT_EQ(held.lent_frames(), 1U);
  held.hide();
  EXPECT_EQ(held.lend(), kNone);
  held.give_back(first);
  EXPECT_TRUE(released().empty());
  held.give_back(second);
  EXPECT_EQ(released(), std::vector<void*>{shown.handle});
  EXPECT_EQ(held.lent_frames(), 0U);
}

// A worker may finish a piece while the next one is being shown.
TEST_F(HeldFramesTest, TheShownFrameStaysWhenAllLoansAreBack) {
  RxFrame shown = frame();
  held.show(shown);
  held.give_back(held.lend());
  EXPECT_TRUE(released().empty());
  const std::uint32_t again = held.lend();
  ASSERT_NE(again, kNone);
  RxFrame next = frame();
  held.show(next);
  EXPECT_TRUE(released().empty());
  held.give_back(again);
  EXPECT_EQ(released(), std::vector<void*>{shown.handle});
  held.hide();
  EXPECT_FALSE(next.kept) << "it was not borrowed";
  EXPECT_TRUE(released().empty());
}

// It arrived ahead of its turn, and its bytes are delivered now.
TEST_F(HeldFramesTest, ALoanOutlivesTheReleaseOfAHeldFrame) {
  const RxFrame early = frame();
  const std::uint32_t piece = held.hold(early, SeqNum(1), 0, 10, share);
  ASSERT_NE(piece, kNone);
  held.show(held[piece].frame);
  const std::uint32_t loan = held.lend();
  ASSERT_NE(loan, kNone);
  held.release(piece, share);
  EXPECT_EQ(held.held_frames(), 0U);
  EXPECT_EQ(share, 0U);
  EXPECT_TRUE(released().empty());
  held.give_back(loan);
  EXPECT_EQ(released(), std::vector<void*>{early.handle});
  // And once more without a loan.
  const std::uint32_t other = held.hold(early, SeqNum(1), 0, 10, share);
  held.show(held[other].frame);
  held.release(other, share);
  EXPECT_EQ(released().size(), 1U);
}

TEST_F(HeldFramesTest, LendsHalfOfTheBytesThatAreNotHeld) {
  std::vector<RxFrame> frames;
  for (int i = 0; i < 9; ++i) frames.push_back(frame());
  ASSERT_NE(held.hold(frame(2000), SeqNum(1), 0, 10, share), kNone);
  std::vector<std::uint32_t> loans;
  for (RxFrame& one : frames) {
    held.show(one);
    const std::uint32_t loan = held.lend();
    EXPECT_EQ(one.kept, loan != kNone);
    if (loan != kNone) loans.push_back(loan);
  }
  EXPECT_EQ(loans.size(), 3U) << "of 8000 bytes 2000 are held";
  held.hide();
  for (const std::uint32_t loan : loans) held.give_back(loan);
  EXPECT_EQ(released().size(), 3U);
}

TEST_F(HeldFramesTest, LoansLeaveRoomForLosses) {
  std::vector<RxFrame> frames;
  for (int i = 0; i < 4; ++i) frames.push_back(frame());
  for (RxFrame& one : frames) {
    held.show(one);
    ASSERT_NE(held.lend(), kNone);
  }
  held.hide();
  EXPECT_NE(held.hold(frame(), SeqNum(1), 0, 10, share), kNone);
  EXPECT_NE(held.hold(frame(), SeqNum(2), 0, 10, share), kNone);
  EXPECT_EQ(held.hold(frame(), SeqNum(3), 0, 10, share), kNone) << "as much is left to the others";
}

// Frames that are missing at another queue; frames of our own queue are not limited by it.
TEST_F(HeldFramesTest, HoldsFewFramesOfOtherQueues) {
  HeldFrames shared(1'000'000, 100, {.index = 1, .count = 3});
  const auto hold = [&](std::uint8_t port) {
    RxFrame one = frame();
    one.port = port;
    return shared.hold(one, SeqNum(1), 0, 10, share);
  };
  std::vector<std::uint32_t> pieces;
  for (std::size_t i = 0; i < Shard::kMostHeldOfOthers; ++i)
    pieces.push_back(hold(static_cast<std::uint8_t>(i % 2 * 2)));
  EXPECT_EQ(std::count(pieces.begin(), pieces.end(), kNone), 0);
  EXPECT_EQ(hold(0), kNone);
  EXPECT_EQ(hold(2), kNone);
  RxFrame one = frame();
  EXPECT_TRUE(shared.has_enough_of_others(one));
  one.port = 1;
  EXPECT_FALSE(shared.has_enough_of_others(one));
  EXPECT_NE(hold(1), kNone);
  shared.release(pieces.back(), share);
  EXPECT_NE(hold(0), kNone);
  EXPECT_EQ(hold(2), kNone);
}

TEST_F(HeldFramesTest, PromisesWindowsUpToTheBytesItMayHold) {
  EXPECT_EQ(held.promise(5000), 5000U);
  EXPECT_EQ(held.promise(5000), 3000U);
  EXPECT_EQ(held.promise(1), 0U);
  held.take_back(5000);
  EXPECT_EQ(held.promise(6000), 5000U);
}

}  // namespace
}  // namespace ztcp::tcp
