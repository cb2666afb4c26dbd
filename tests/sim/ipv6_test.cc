// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Paths over IPv6 that carry less than the link. Handshakes are in ends_test.cc, for both families.
#include <chrono>

#include <gtest/gtest.h>

#include "tests/sim/tcp_world.h"

namespace ztcp::sim {
namespace {

using namespace std::chrono_literals;

TEST(Ipv6, ASilentlyShrinkingPathMtuUnderBulkIsFollowed) {
  for (const std::size_t mtu : {std::size_t{1500}, std::size_t{1300}}) {
    TcpWorldOptions options = short_path(20'000'000, 2'000'000, /*is_ipv6=*/true);
    options.world.forward.rate_bits_per_second = 10'000'000'000;
    options.world.forward.queue_limit_bytes = 1 << 20;
    TcpWorld pair(options);
    ASSERT_TRUE(pair.run_until_connected()) << pair.world.why();
    ASSERT_TRUE(pair.world.run_until([&] { return pair.server.received() > 5'000'000; }));
    pair.world.wire(0).set_path_mtu(mtu);
    pair.world.wire(1).set_path_mtu(mtu);
    ASSERT_TRUE(pair.world.run_until([&] { return pair.is_all_delivered(); }, 5s))
        << pair.world.why();
    EXPECT_LE(pair.world.now() - TimePoint(1s), 600ms) << mtu;
    ASSERT_TRUE(pair.world.run_for(3s)) << pair.world.why();
    EXPECT_EQ(pair.client_stack.counters().path_mtu_cuts, 1U);
    EXPECT_TRUE(pair.finish()) << pair.world.why();
  }
}

}  // namespace
}  // namespace ztcp::sim
