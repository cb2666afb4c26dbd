// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/msg/send_message.h"

#include <memory>
#include <vector>

#include <gtest/gtest.h>

namespace ztcp::msg {
namespace {

constexpr std::uint64_t kUnit = 4096;

class SendMessageTest : public testing::Test {
 protected:
  void start(std::size_t size) {
    bytes_.resize(size);
    message_->start(bytes_, 1, 0);
  }
  void hand_out(std::size_t flow, std::uint64_t units, bool eager = false) {
    auto piece = message_->has_lost() ? message_->next_lost() : message_->next_new();
    piece.size_bytes = std::min(piece.size_bytes, units * kUnit);
    message_->hand_out(piece, flow, eager, end_ += piece.size_bytes);
  }

  std::vector<std::byte> bytes_;
  std::unique_ptr<SendMessage> message_ = std::make_unique<SendMessage>();
  std::uint64_t end_ = 100;
};

TEST_F(SendMessageTest, SendsItsPiecesInOrder) {
  start(3 * kUnit + 5);
  EXPECT_FALSE(message_->is_handed_out());
  hand_out(0, 2);
  EXPECT_EQ(message_->next_new().offset, 2 * kUnit);
  hand_out(1, 9);
  EXPECT_TRUE(message_->is_handed_out());
  EXPECT_EQ(message_->stream_end(0), 100 + 2 * kUnit);
  EXPECT_EQ(message_->stream_end(1), 100 + 3 * kUnit + 5);
  EXPECT_EQ(message_->stream_end(2), 0U);
}

TEST_F(SendMessageTest, FindsExactlyTheUnitsOfADeadFlow) {
  start(8 * kUnit + 100);
  hand_out(0, 2);        // 0 1
  hand_out(1, 3, true);  // 2 3 4
  hand_out(0, 1);        // 5
  hand_out(1, 2, true);  // 6 7
  hand_out(1, 9, true);  // 8, of 100 bytes
  message_->doubt(1);
  ChunkMap held{};
  held.set(0, 1);  // Not this flow's: irrelevant.
  held.set(3, 5);
  message_->resolve(1, &held);
  ASSERT_TRUE(message_->has_lost());
  EXPECT_EQ(message_->eager_bytes({2 * kUnit, kUnit}), kUnit);
  EXPECT_EQ(message_->eager_bytes({6 * kUnit, 2 * kUnit + 100}), 2 * kUnit + 100);
  EXPECT_EQ(message_->next_lost().offset, 2 * kUnit);
  EXPECT_EQ(message_->next_lost().size_bytes, kUnit);
  hand_out(0, 9);
  EXPECT_EQ(message_->next_lost().offset, 6 * kUnit);
  EXPECT_EQ(message_->next_lost().size_bytes, 2 * kUnit + 100);
  hand_out(2, 1);
  hand_out(3, 9);
  EXPECT_FALSE(message_->has_lost());
  EXPECT_TRUE(message_->is_handed_out());

  // Units that were held or sent again elsewhere are not the flow's any more.
  message_->doubt(1);
  message_->resolve(1, nullptr);
  EXPECT_FALSE(message_->has_lost());
}

TEST_F(SendMessageTest, KeepsItsUnsentRestWhenAFlowDies) {
  start(6 * kUnit);
  hand_out(2, 2);
  message_->doubt(2);
  message_->resolve(2, nullptr);
  EXPECT_EQ(message_->eager_bytes(message_->next_lost()), 0U);
  EXPECT_EQ(message_->next_lost().size_bytes, 2 * kUnit);
  hand_out(0, 9);
  EXPECT_FALSE(message_->has_lost());
  EXPECT_FALSE(message_->is_handed_out());
  EXPECT_EQ(message_->next_new().offset, 2 * kUnit);
}

TEST_F(SendMessageTest, AnEmptyMessageHasAChunkToLose) {
  start(0);
  EXPECT_FALSE(message_->is_handed_out());
  hand_out(0, 1, true);
  EXPECT_TRUE(message_->is_handed_out());
  message_->doubt(0);
  message_->resolve(0, nullptr);
  ASSERT_TRUE(message_->has_lost());
  EXPECT_EQ(message_->next_lost().size_bytes, 0U);
  hand_out(1, 1, true);
  EXPECT_FALSE(message_->has_lost());
  message_->doubt(1);
  const ChunkMap held{};
  message_->resolve(1, &held);  // Its map has no bit to set.
  EXPECT_FALSE(message_->has_lost());
}

}  // namespace
}  // namespace ztcp::msg
