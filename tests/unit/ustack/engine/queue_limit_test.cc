// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/engine/queue_limit.h"

#include <gtest/gtest.h>

namespace ztcp::ustack {
namespace {

using namespace std::chrono_literals;

// A line and its sender, which runs a turn after each `gap` and always has more to send.
class Line {
 public:
  explicit Line(std::uint64_t bytes_per_us, std::uint64_t frame_bytes = 1500)
      : bytes_per_us_(bytes_per_us), frame_bytes_(frame_bytes), limit(frame_bytes) {}

  void look_after(Duration gap) {
    now_ += gap;
    const auto could = bytes_per_us_ * static_cast<std::uint64_t>(gap.count()) / 1000;
    dry_bytes += could > queued_ ? could - queued_ : 0;
    queued_ -= std::min(could, queued_);
    for (std::uint64_t room = limit.room(now_, taken_, queued_); room > 0;
         room -= std::min(room, frame_bytes_)) {
      taken_ += frame_bytes_;
      queued_ += frame_bytes_;
    }
    limit.note_held_back();
    most_queued = std::max(most_queued, queued_);
  }

  std::uint64_t dry_bytes = 0;  // Bytes that the line could have sent while its queue was empty.
  std::uint64_t most_queued = 0;

 private:
  std::uint64_t bytes_per_us_;
  std::uint64_t frame_bytes_;
  TimePoint now_{1s};
  std::uint64_t taken_ = 0;
  std::uint64_t queued_ = 0;

 public:
  QueueLimit limit;
};

TEST(QueueLimit, SlowLineGetsTheMinimum) {
  Line line(125);  // 1 Gb/s
  for (int i = 0; i < 100'000; ++i) line.look_after(5us);
  EXPECT_EQ(line.limit.limit_bytes(), QueueLimit::kLeastBytes);
}

TEST(QueueLimit, IsAtLeastTwoFrames) {
  constexpr std::uint64_t kSuperSegment = 65535;
  EXPECT_EQ(QueueLimit(kSuperSegment).limit_bytes(), 2 * kSuperSegment);
}

// 100 Gb/s and a turn every 20 us: 250 kB between two turns.
TEST(QueueLimit, GrowsUntilTheLineStaysBusy) {
  Line line(12'500);
  for (int i = 0; i < 10; ++i) line.look_after(20us);
  line.dry_bytes = 0;
  for (int i = 0; i < 200'000; ++i) line.look_after(20us);
  EXPECT_EQ(line.dry_bytes, 0U);
  EXPECT_LE(line.most_queued, 3 * 250'000U);
}

TEST(QueueLimit, GrowsAndShrinksWithTheTimeBetweenTurns) {
  Line line(1'250);
  for (int i = 0; i < 1000; ++i) line.look_after(5us);
  EXPECT_EQ(line.limit.limit_bytes(), QueueLimit::kLeastBytes);
  for (int i = 0; i < 10; ++i) line.look_after(1ms);
  line.dry_bytes = 0;
  for (int i = 0; i < 1000; ++i) line.look_after(1ms);
  EXPECT_EQ(line.dry_bytes, 0U);
  // The limit shrinks again when turns are frequent again.
  for (int i = 0; i < 400'000; ++i) line.look_after(5us);
  EXPECT_EQ(line.limit.limit_bytes(), QueueLimit::kLeastBytes);
}

// Every thread is off its CPU now and then: after the first such gaps the line never runs dry.
TEST(QueueLimit, CoversOccasionalGapsBetweenTurns) {
  Line line(1'250);
  const auto a_while = [&] {
    for (int i = 0; i < 20'000; ++i) line.look_after(5us);
    line.look_after(400us);
  };
  for (int i = 0; i < 5; ++i) a_while();
  line.dry_bytes = 0;
  for (int i = 0; i < 20; ++i) a_while();
  EXPECT_EQ(line.dry_bytes, 0U);
}

TEST(QueueLimit, SenderWithLittleDataHasTheMinimumAfterIdleTime) {
  QueueLimit limit(1500);
  EXPECT_EQ(limit.room(TimePoint(1s), 0, 0), QueueLimit::kLeastBytes);
  EXPECT_EQ(limit.room(TimePoint(100s), 1000, 0), QueueLimit::kLeastBytes);
  EXPECT_EQ(limit.room(TimePoint(200s), 2000, 1000), QueueLimit::kLeastBytes - 1000);
}

}  // namespace
}  // namespace ztcp::ustack
