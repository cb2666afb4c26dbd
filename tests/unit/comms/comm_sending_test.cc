// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <array>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/polling.h"
#include "tests/unit/ustack/memory_nics.h"
#include "transport/comms/comm.h"

namespace ztcp::comms {
namespace {

using namespace test;
using ustack::TwoHosts;

TEST(SendComm, ASmallMessageLeavesWithinTheCall) {
  const Bytes bytes = pattern(8, 1);  // Outlives the comm, which may still send it.
  // The background thread sleeps for so long that only the call itself can have sent the message.
  TwoHosts hosts({.mode = config::PollerMode::kShared, .max_sleep_us = 100'000'000});
  Pair pair = connect(hosts[0], hosts[1]);
  const std::uint64_t before = hosts.links[0]->counters().tx_frames;
  ASSERT_NE(post_until_taken(*pair.sender, bytes, nullptr), nullptr);
  EXPECT_EQ(hosts.links[0]->counters().tx_frames, before + 1);
}

// One for each buffer that can be posted: NCCL may have 32 groups of 8 in flight.
TEST(SendComm, Allows256OutstandingMessagesAndNoMore) {
  // Larger than the eager allowance, and no receive is posted for it. Outlives the comm.
  const Bytes large = pattern(1U << 20U, 1);
  TwoHosts hosts;
  Pair pair = connect(hosts[0], hosts[1]);
  for (int i = 0; i < 256; ++i) {
    const auto request = pair.sender->post_send(large, 0, nullptr);
    ASSERT_TRUE(request);
    ASSERT_NE(*request, nullptr) << i;
  }
  const auto request = pair.sender->post_send(large, 0, nullptr);
  ASSERT_TRUE(request);
  EXPECT_EQ(*request, nullptr);
}

}  // namespace
}  // namespace ztcp::comms
