// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/memory_timeout.h"

#include <chrono>

#include <gtest/gtest.h>

namespace ztcp::comms {
namespace {

// An abort of a job whose network has failed: hundreds of peers, one after the other.
TEST(MemoryTimeout, PeersThatDoNotAnswerShareOneTimeout) {
  using std::chrono::milliseconds;
  MemoryTimeout timeout;
  timeout.set(milliseconds(2000));
  const auto peer = [](std::uint32_t n) { return Ipv4Address{0x0a010000U + n}; };
  EXPECT_EQ(timeout.for_peer(peer(1)), milliseconds(2000));
  timeout.ran_out(peer(1), milliseconds(1500));
  EXPECT_EQ(timeout.for_peer(peer(1)), Duration::zero());
  EXPECT_EQ(timeout.for_peer(peer(2)), milliseconds(500));
  Duration waited = milliseconds(1500);
  for (std::uint32_t n = 2; n < 100; ++n) {
    const Duration again = timeout.for_peer(peer(n));
    timeout.ran_out(peer(n), again);
    waited += again;
  }
  EXPECT_LE(waited, milliseconds(2000) + 98 * MemoryTimeout::kLeast);
  EXPECT_EQ(timeout.for_peer(peer(100)), MemoryTimeout::kLeast) << "time for ACKs";
}

}  // namespace
}  // namespace ztcp::comms
