// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/recv_comm.h"

#include <array>

#include <gtest/gtest.h>

#include "tests/unit/ustack/memory_nics.h"
#include "tests/unit/ustack/polling.h"

namespace ztcp::ustack {
namespace {

TEST(RecvComm, HasThirtyTwoRequestsOutstandingAndNoMore) {
  TwoHosts hosts;
  Pair pair = connect(hosts[0], hosts[1]);
  std::array<std::array<std::byte, 8>, 33> buffers{};
  for (int i = 0; i < 32; ++i) {
    const auto request = post_recv(*pair.receiver, buffers[static_cast<std::size_t>(i)]);
    ASSERT_TRUE(request);
    EXPECT_NE(*request, nullptr) << i;
  }
  const auto request = post_recv(*pair.receiver, buffers[32]);
  ASSERT_TRUE(request);
  EXPECT_EQ(*request, nullptr);
}

TEST(RecvComm, AMessageLargerThanItsBufferFailsTheConnection) {
  TwoHosts hosts;
  Pair pair = connect(hosts[0], hosts[1]);
  Bytes small(100);
  const auto receiving = post_recv(*pair.receiver, small);
  ASSERT_TRUE(receiving && *receiving != nullptr);
  const Bytes large(101);
  ASSERT_NE(post_until_taken(*pair.sender, large, nullptr), nullptr);
  const auto result = finish(**receiving);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Errc::kTruncated);
  // Every later call says the same.
  const auto again = post_recv(*pair.receiver, small);
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().code, Errc::kTruncated);
}

}  // namespace
}  // namespace ztcp::ustack
