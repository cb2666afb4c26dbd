// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The window between NCCL's thread and the engine: what may be posted, and what the engine sees.
#include "transport/ustack/slots.h"

#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "transport/ustack/comm_state.h"

namespace ztcp::ustack {
namespace {

class Slots : public testing::Test {
 protected:
  Slot* post() { return table_.post(buffer_.data(), buffer_.size(), kUnmapped); }
  // What the engine takes from the ring, as slots.
  std::vector<std::uint32_t> drain() {
    std::vector<std::uint32_t> taken;
    table_.drain([&](std::uint32_t index, std::byte*, std::size_t, std::uint32_t) {
      taken.push_back(index);
    });
    return taken;
  }

  std::array<std::byte, 8> buffer_{};
  // Slots only remember whose they are.
  alignas(CommState) std::array<std::byte, sizeof(CommState)> nobody_{};
  SlotTable table_{reinterpret_cast<CommState&>(nobody_)};
};

// The session numbers messages and keeps them by number modulo 32: the 33rd would take the place of
// the first while that one is still under way, however many of those between are done.
TEST_F(Slots, AreAWindowAndNotAHeap) {
  std::vector<Slot*> posted;
  for (std::size_t i = 0; i < SlotTable::kSlots; ++i) posted.push_back(post());
  const std::vector<std::uint32_t> taken = drain();
  ASSERT_EQ(taken.size(), SlotTable::kSlots);
  EXPECT_EQ(post(), nullptr);
  for (std::size_t i = 1; i < SlotTable::kSlots; ++i) {
    table_.complete(taken[i], i);
    std::size_t size = 0;
    ASSERT_TRUE(table_.take_done(*posted[i], &size));
    EXPECT_EQ(size, i);
    EXPECT_EQ(post(), nullptr) << "with the oldest under way, after " << i;
  }
  table_.complete(taken[0], 0);
  EXPECT_EQ(post(), nullptr) << "done, but NCCL has not heard of it";
  ASSERT_TRUE(table_.take_done(*posted[0], nullptr));
  for (std::size_t i = 0; i < SlotTable::kSlots; ++i) EXPECT_NE(post(), nullptr) << i;
  EXPECT_EQ(post(), nullptr);
  EXPECT_EQ(drain().size(), SlotTable::kSlots);
}

TEST_F(Slots, ReachTheEngineInTheOrderOfPosting) {
  for (std::size_t i = 0; i < 1000; ++i) {
    Slot* const first = post();
    Slot* const second = post();
    ASSERT_NE(second, nullptr);
    const auto taken = drain();
    ASSERT_EQ(taken.size(), 2U);
    table_.complete(taken[1], 2);
    table_.complete(taken[0], 1);
    std::size_t size = 0;
    ASSERT_TRUE(table_.take_done(*second, &size));
    EXPECT_EQ(size, 2U);
    ASSERT_TRUE(table_.take_done(*first, &size));
    EXPECT_EQ(size, 1U);
  }
}

}  // namespace
}  // namespace ztcp::ustack
