// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/shm_ring.h"

#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

namespace ztcp::link {
namespace {

constexpr std::uint32_t kSlots = 8;
constexpr std::uint32_t kSlotBytes = 256;

class ShmRing : public testing::Test {
 protected:
  void send(std::uint32_t value) {
    ASSERT_GT(sender_.room(), 0U);
    std::memcpy(sender_.next_slot(), &value, sizeof(value));
    sender_.push(sizeof(value), 0);
    sender_.publish();
  }
  std::uint32_t read(const ShmNote& note) const {
    std::uint32_t value = 0;
    std::memcpy(&value, receiver_.slot(note), sizeof(value));
    return value;
  }

  std::unique_ptr<ShmWay> way_ = std::make_unique<ShmWay>();
  std::vector<std::byte> slots_ = std::vector<std::byte>(std::size_t{kSlots} * kSlotBytes);
  ShmPlace place_{way_.get(), slots_.data(), kSlots, kSlotBytes};
  ShmSender sender_{place_};
  ShmReceiver receiver_{place_};
};

TEST_F(ShmRing, ReusesTheSlotThatCameBackLast) {
  for (std::uint32_t i = 0; i < 100; ++i) {
    ASSERT_TRUE(sender_.collect());
    send(i);
    ShmNote note;
    ASSERT_EQ(receiver_.take(note), ShmReceiver::Outcome::kFrame);
    EXPECT_EQ(read(note), i);
    EXPECT_EQ(note.slot, 0U);
    receiver_.give_back(note.slot);
    receiver_.publish();
  }
}

TEST_F(ShmRing, TakesSlotsBackInAnyOrder) {
  std::vector<ShmNote> notes(kSlots);
  for (std::uint32_t i = 0; i < kSlots; ++i) send(i);
  EXPECT_EQ(sender_.room(), 0U);
  for (std::uint32_t i = 0; i < kSlots; ++i) {
    ASSERT_EQ(receiver_.take(notes[i]), ShmReceiver::Outcome::kFrame);
    EXPECT_EQ(read(notes[i]), i);
  }
  EXPECT_EQ(receiver_.take(notes[0]), ShmReceiver::Outcome::kNothing);
  EXPECT_EQ(receiver_.held(), kSlots);
  for (const std::uint32_t i : {5U, 2U, 7U}) receiver_.give_back(notes[i].slot);
  ASSERT_TRUE(sender_.collect());
  EXPECT_EQ(sender_.room(), 0U) << "not shown yet";
  receiver_.publish();
  ASSERT_TRUE(sender_.collect());
  EXPECT_EQ(sender_.room(), 3U);
  for (std::uint32_t i = 0; i < 3; ++i) send(100 + i);
  ShmNote note;
  for (std::uint32_t i = 0; i < 3; ++i) {
    ASSERT_EQ(receiver_.take(note), ShmReceiver::Outcome::kFrame);
    EXPECT_EQ(read(note), 100 + i);
  }
}

TEST_F(ShmRing, RejectsImpossibleNotes) {
  const auto outcome_of = [&](const ShmNote& first, std::uint32_t sent) {
    auto way = std::make_unique<ShmWay>();
    ShmReceiver receiver({way.get(), slots_.data(), kSlots, kSlotBytes});
    way->notes[0] = first.packed();
    way->sent = sent;
    ShmNote note;
    return receiver.take(note);
  };
  EXPECT_EQ(outcome_of({0, 100, 156}, 1), ShmReceiver::Outcome::kFrame);
  EXPECT_EQ(outcome_of({kSlots, 10, 0}, 1), ShmReceiver::Outcome::kBroken) << "no such slot";
  EXPECT_EQ(outcome_of({0, 129, 0}, 1), ShmReceiver::Outcome::kBroken) << "too long a header";
  EXPECT_EQ(outcome_of({0, 100, 157}, 1), ShmReceiver::Outcome::kBroken) << "beyond its slot";
  EXPECT_EQ(outcome_of({0, 100, UINT32_MAX}, 1), ShmReceiver::Outcome::kBroken);
  EXPECT_EQ(outcome_of({0, 100, 0}, kSlots + 1), ShmReceiver::Outcome::kBroken) << "too many";
}

TEST_F(ShmRing, ASlotIsHeldOnce) {
  send(1);
  ShmNote note;
  ASSERT_EQ(receiver_.take(note), ShmReceiver::Outcome::kFrame);
  way_->notes[1] = note.packed();
  way_->sent = 2;
  EXPECT_EQ(receiver_.take(note), ShmReceiver::Outcome::kBroken);
}

TEST_F(ShmRing, RejectsImpossibleReturns) {
  way_->returned = 1;
  EXPECT_FALSE(sender_.collect()) << "nothing was sent";
  ShmSender other(place_);
  way_->returned = 0;
  other.push(10, 0);
  other.push(10, 0);
  way_->numbers[0] = kSlots;
  way_->returned = 1;
  EXPECT_FALSE(other.collect()) << "no such slot";
  ShmSender third(place_);
  way_->returned = 0;
  third.push(10, 0);
  third.push(10, 0);
  way_->numbers[0] = way_->numbers[1] = 0;
  way_->returned = 2;
  EXPECT_FALSE(third.collect()) << "twice the same";
}

// For ThreadSanitizer: a slot belongs to one thread at a time.
TEST_F(ShmRing, CarriesEverythingBetweenTwoThreads) {
  constexpr std::uint32_t kFrames = 20000;
  std::thread reader([this] {
    std::vector<ShmNote> kept;
    for (std::uint32_t i = 0; i < kFrames;) {
      ShmNote note;
      if (receiver_.take(note) != ShmReceiver::Outcome::kFrame) {
        std::this_thread::yield();
        continue;
      }
      ASSERT_EQ(read(note), i++);
      // Three are kept for a while, and returned in another order.
      kept.push_back(note);
      if (kept.size() < 4) continue;
      receiver_.give_back(kept[1].slot);
      kept.erase(kept.begin() + 1);
      receiver_.publish();
    }
  });
  for (std::uint32_t i = 0; i < kFrames;) {
    ASSERT_TRUE(sender_.collect());
    if (sender_.room() == 0) {
      std::this_thread::yield();
      continue;
    }
    send(i++);
  }
  reader.join();
}

}  // namespace
}  // namespace ztcp::link
