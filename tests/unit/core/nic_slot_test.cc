// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/nic_slot.h"

#include <gtest/gtest.h>

namespace ztcp {
namespace {

TEST(NicSlot, AProcessThatIsAloneHasEverything) {
  const NicSlot slot;
  EXPECT_FALSE(slot.is_shared());
  EXPECT_EQ(slot.queues(5), 5U);
  EXPECT_TRUE(slot.has_queue(4));
  EXPECT_EQ(slot.listen_port(7471), 7471);
}

TEST(NicSlot, EachQueueHasOneSlot) {
  for (std::uint16_t count = 1; count <= 9; ++count)
    for (std::uint32_t all = 0; all <= 20; ++all) {
      std::uint32_t sum = 0;
      for (std::uint16_t index = 0; index < count; ++index) {
        const NicSlot slot{index, count};
        std::uint32_t queues = 0;
        for (std::uint32_t queue = 0; queue < all; ++queue) queues += slot.has_queue(queue) ? 1 : 0;
        EXPECT_EQ(slot.queues(all), queues) << index << " of " << count << ", " << all;
        EXPECT_LE(queues, (all + count - 1) / count) << "an equal part";
        sum += queues;
      }
      EXPECT_EQ(sum, all);
    }
}

TEST(NicSlot, EachHasAListeningPort) {
  EXPECT_EQ((NicSlot{0, 8}.listen_port(7471)), 7471);
  EXPECT_EQ((NicSlot{7, 8}.listen_port(7471)), 7478);
}

}  // namespace
}  // namespace ztcp
