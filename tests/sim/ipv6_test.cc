// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How connections over IPv6 begin, and paths that carry less than the link. All else is common to
// both families.
#include <chrono>

#include <gtest/gtest.h>

#include "tests/sim/tcp_world.h"

namespace ztcp::sim {
namespace {

using namespace std::chrono_literals;

TcpWorldOptions over_ipv6(std::size_t client_bytes, std::size_t server_bytes) {
  TcpWorldOptions options;
  options.is_ipv6 = true;
  options.world.forward.delay = 10us;
  options.world.backward.delay = 10us;
  options.stack.mtu_bytes = 9000;
  options.client_bytes = client_bytes;
  options.server_bytes = server_bytes;
  return options;
}

TEST(Ipv6, HandshakeTakesARoundTripAndASolicitation) {
  TcpWorld pair(over_ipv6(0, 0));
  const TimePoint begin = pair.world.now();
  ASSERT_TRUE(pair.run_until_connected()) << pair.world.why();
  EXPECT_LE(pair.world.now() - begin, 100us);
  EXPECT_EQ(pair.server_stack.counters().connections_accepted, 1U);
  EXPECT_TRUE(pair.finish()) << pair.world.why();
}

TEST(Ipv6, HandshakeSurvivesTheLossOfAnyFrame) {
  // From each: the report of its group, the probe of its address, then as over IPv4.
  for (std::uint64_t lost = 0; lost < 7; ++lost) {
    for (const std::size_t from : {0U, 1U}) {
      TcpWorld pair(over_ipv6(5000, 5000));
      pair.world.wire(from).drop_exactly({lost});
      ASSERT_TRUE(pair.run_until_connected()) << pair.world.why() << " lost " << lost;
      ASSERT_TRUE(pair.world.run_until([&] { return pair.is_all_delivered(); }, 10s))
          << pair.world.why() << " lost " << lost << " from " << from;
      EXPECT_TRUE(pair.finish()) << pair.world.why();
    }
  }
}

TEST(Ipv6, ASilentlyShrinkingPathMtuUnderBulkIsFollowed) {
  for (const std::size_t mtu : {std::size_t{1500}, std::size_t{1300}}) {
    TcpWorldOptions options = over_ipv6(20'000'000, 2'000'000);
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
