// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How connections begin and end when both ends are ours: refusals, simultaneous closes, resets,
// peers that vanish, paths that swallow large packets.
#include <chrono>

#include <gtest/gtest.h>

#include "tests/sim/tcp_world.h"

namespace ztcp::sim {
namespace {

using namespace std::chrono_literals;

TcpWorldOptions small(std::size_t client_bytes = 100'000, std::size_t server_bytes = 50'000) {
  return short_path(client_bytes, server_bytes);
}

TEST(Ends, HandshakeTakesARoundTripAndThatOfANeighbour) {
  for (const bool is_ipv6 : {false, true}) {
    TcpWorld pair(short_path(0, 0, is_ipv6));
    const TimePoint begin = pair.world.now();
    ASSERT_TRUE(pair.run_until_connected()) << pair.world.why();
    EXPECT_LE(pair.world.now() - begin, 100us);
    EXPECT_EQ(pair.client_stack.counters().connections_opened, 1U);
    EXPECT_EQ(pair.server_stack.counters().connections_accepted, 1U);
    EXPECT_TRUE(pair.finish()) << pair.world.why();
  }
}

void connect_without_frame(bool is_ipv6, std::size_t from, std::uint64_t lost) {
  TcpWorld pair(short_path(5000, 5000, is_ipv6));
  pair.world.wire(from).drop_exactly({lost});
  ASSERT_TRUE(pair.run_until_connected()) << pair.world.why() << " lost " << lost;
  ASSERT_TRUE(pair.world.run_until([&] { return pair.is_all_delivered(); }, 10s))
      << pair.world.why() << " lost " << lost << " from " << from;
  EXPECT_TRUE(pair.finish()) << pair.world.why();
}

TEST(Ends, HandshakeSurvivesTheLossOfAnyFrame) {
  // ARP request, SYN, ACK from the client; ARP reply, SYN-ACK from the server. Over IPv6 each first
  // reports its group and probes its address.
  for (const bool is_ipv6 : {false, true})
    for (std::uint64_t lost = 0; lost < (is_ipv6 ? 7U : 5U); ++lost)
      for (const std::size_t from : {0U, 1U}) connect_without_frame(is_ipv6, from, lost);
}

TEST(Ends, ConnectToAPortWithoutListenerIsRefused) {
  TcpWorld pair(small());
  const auto stream =
      pair.client_stack.connect(pair.world.now(), {TcpWorld::address(1), 9}, pair.client);
  ASSERT_TRUE(stream);
  ASSERT_TRUE(pair.world.run_until([&] { return pair.client.error().has_value(); }, 1s))
      << pair.world.why();
  EXPECT_EQ(pair.client.error()->code, Errc::kRefused);
  EXPECT_EQ(pair.server_stack.counters().tx_resets, 1U);
}

TEST(Ends, AnAcceptorMayRefuse) {
  TcpWorld pair(small());
  pair.server.refuse_streams();
  ASSERT_TRUE(pair.connect());
  ASSERT_TRUE(pair.world.run_until([&] { return pair.client.error().has_value(); }, 1s))
      << pair.world.why();
  EXPECT_TRUE(pair.world.run_until_idle()) << pair.world.why();
}

TEST(Ends, ConnectWithoutAnswerFails) {
  TcpWorld pair(small());
  pair.world.wire(1).cut();
  ASSERT_TRUE(pair.connect());
  const TimePoint begin = pair.world.now();
  ASSERT_TRUE(pair.world.run_until([&] { return pair.client.error().has_value(); }, 60s))
      << pair.world.why();
  EXPECT_LE(pair.world.now() - begin, 21s);
  EXPECT_TRUE(pair.client.error()->code == Errc::kTimedOut ||
              pair.client.error()->code == Errc::kNoRoute);
  EXPECT_TRUE(pair.world.run_until_idle()) << pair.world.why();
}

TEST(Ends, SimultaneousCloseEndsBothWithAnyFrameLost) {
  for (std::uint64_t lost = 0; lost < 12; ++lost) {
    TcpWorldOptions options = small(3000, 3000);
    TcpWorld pair(options);
    ASSERT_TRUE(pair.run_until_connected()) << pair.world.why();
    ASSERT_TRUE(pair.world.run_until([&] { return pair.is_all_delivered(); })) << pair.world.why();
    // Both ends finish with any one of the frames lost.
    pair.world.wire(lost % 2).drop_exactly(
        {pair.world.wire(lost % 2).counters().offered + lost / 2});
    EXPECT_TRUE(pair.finish()) << pair.world.why() << " lost " << lost;
    EXPECT_FALSE(pair.client.error());
    EXPECT_FALSE(pair.server.error());
  }
}

TEST(Ends, AHalfClosedStreamStillCarriesTheOtherHalf) {
  TcpWorld pair(small(1000, 2'000'000));
  pair.client.close_when_acked();  // Long before the server has sent all...
  ASSERT_TRUE(pair.connect());
  ASSERT_TRUE(pair.world.run_until([&] { return pair.server.is_peer_closed(); }))
      << pair.world.why();
  // ...but after close() this end reads no more: the server may be reset or finish.
  ASSERT_TRUE(pair.world.run_until(
      [&] { return pair.server.is_all_acked() || pair.server.error().has_value(); }, 60s))
      << pair.world.why();
  EXPECT_TRUE(pair.finish()) << pair.world.why();
}

TEST(Ends, CloseAfterDataReachesThePeerAfterTheData) {
  TcpWorld pair(small(1'000'000, 0));
  pair.client.close_when_acked();
  pair.server.close_when_peer_does();
  ASSERT_TRUE(pair.connect());
  ASSERT_TRUE(pair.world.run_until_idle()) << pair.world.why();
  EXPECT_TRUE(pair.server.has_received_all());
  EXPECT_TRUE(pair.server.is_peer_closed());
  EXPECT_EQ(pair.client_stack.unfinished() + pair.server_stack.unfinished(), 0U);
}

TEST(Ends, AbortResetsThePeer) {
  TcpWorld pair(small(10'000'000, 0));
  ASSERT_TRUE(pair.run_until_connected()) << pair.world.why();
  ASSERT_TRUE(pair.world.run_until([&] { return pair.server.received() > 100'000; }));
  pair.client.abort();
  ASSERT_TRUE(pair.world.run_until([&] { return pair.server.error().has_value(); }, 1s))
      << pair.world.why();
  EXPECT_EQ(pair.server.error()->code, Errc::kPeerClosed);
  EXPECT_TRUE(pair.world.run_until_idle()) << pair.world.why();
  EXPECT_EQ(pair.world.held_frames(), 0U);
}

TEST(Ends, ALostResetIsSentAgainWhenThePeerSpeaks) {
  TcpWorld pair(small(10'000'000, 0));
  ASSERT_TRUE(pair.run_until_connected()) << pair.world.why();
  ASSERT_TRUE(pair.world.run_until([&] { return pair.server.received() > 100'000; }));
  pair.world.wire(1).drop_exactly({pair.world.wire(1).counters().offered});
  pair.world.wire(1).cut();
  pair.server.abort();
  ASSERT_TRUE(pair.world.run_for(1ms));
  pair.world.wire(1).mend();
  ASSERT_TRUE(pair.world.run_until([&] { return pair.client.error().has_value(); }, 5s))
      << pair.world.why();
  EXPECT_TRUE(pair.world.run_until_idle()) << pair.world.why();
}

TEST(Ends, APeerThatVanishesWhileDataIsSentIsGivenUp) {
  TcpWorld pair(small(10'000'000, 0));
  ASSERT_TRUE(pair.run_until_connected()) << pair.world.why();
  ASSERT_TRUE(pair.world.run_until([&] { return pair.server.received() > 100'000; }));
  pair.world.wire(0).cut();
  pair.world.wire(1).cut();
  const TimePoint cut = pair.world.now();
  ASSERT_TRUE(pair.world.run_until([&] { return pair.client.error().has_value(); }, 120s))
      << pair.world.why();
  EXPECT_EQ(pair.client.error()->code, Errc::kTimedOut);
  const std::chrono::duration<double> user_timeout = tcp::TcpSettings{}.user_timeout;
  EXPECT_NEAR(std::chrono::duration<double>(pair.world.now() - cut).count(), user_timeout.count(),
              5);
  // The other side only receives: its keepalive finds out by itself.
  ASSERT_TRUE(pair.world.run_until([&] { return pair.server.error().has_value(); }, 120s))
      << pair.world.why();
  EXPECT_EQ(pair.server.error()->code, Errc::kTimedOut);
  EXPECT_TRUE(pair.world.run_until_idle()) << pair.world.why();
  EXPECT_EQ(pair.world.held_frames(), 0U);
}

TEST(Ends, KeepaliveFindsASilentPeerAndSparesALivingOne) {
  TcpWorld pair(small(0, 0));
  ASSERT_TRUE(pair.run_until_connected()) << pair.world.why();
  ASSERT_TRUE(pair.world.run_for(300s));
  EXPECT_FALSE(pair.client.error());
  EXPECT_FALSE(pair.server.error());
  pair.world.wire(0).cut();
  const TimePoint cut = pair.world.now();
  ASSERT_TRUE(pair.world.run_until(
      [&] { return pair.client.error().has_value() && pair.server.error().has_value(); }, 60s))
      << pair.world.why();
  // Five seconds idle, then three probes two seconds apart.
  EXPECT_LE(pair.world.now() - cut, 20s);
  EXPECT_TRUE(pair.world.run_until_idle()) << pair.world.why();
}

TEST(Ends, APathThatIsCutForAWhileRecovers) {
  for (const auto gap : {Duration(3ms), Duration(200ms), Duration(5s)}) {
    TcpWorld pair(small(4'000'000, 4'000'000));
    ASSERT_TRUE(pair.run_until_connected()) << pair.world.why();
    ASSERT_TRUE(pair.world.run_until([&] { return pair.server.received() > 100'000; }));
    pair.world.wire(0).cut();
    ASSERT_TRUE(pair.world.run_for(gap));
    pair.world.wire(0).mend();
    const TimePoint mended = pair.world.now();
    ASSERT_TRUE(pair.world.run_until([&] { return pair.is_all_delivered(); }, 60s))
        << pair.world.why();
    EXPECT_LE(pair.world.now() - mended, 4s);
    EXPECT_TRUE(pair.finish()) << pair.world.why();
  }
}

TEST(Ends, AnMtuThatDoesNotFitFailsWithAnErrorThatNamesIt) {
  TcpWorld pair(small(1'000'000, 0));
  pair.world.wire(0).set_path_mtu(1500);
  ASSERT_TRUE(pair.connect());
  ASSERT_TRUE(pair.world.run_until([&] { return pair.client.error().has_value(); }, 60s))
      << pair.world.why();
  EXPECT_EQ(pair.client.error()->code, Errc::kPathMtu);
  EXPECT_LE(pair.world.now() - TimePoint(1s), 1500ms);
}

// The path MTU shrinks under bulk without ICMP: jumbo frames are lost from now on, small ones are
// not. All bytes arrive, with a standstill of less than a tenth of a second.
TEST(Ends, ASilentlyShrinkingPathMtuUnderBulkIsFollowed) {
  for (const std::size_t mtu : {std::size_t{1500}, std::size_t{1300}}) {
    for (std::uint64_t seed = 1; seed <= 3; ++seed) {
      TcpWorldOptions options = small(20'000'000, 2'000'000);
      options.stack.mtu_bytes = 9000;
      options.world.seed = seed;
      options.world.forward.rate_bits_per_second = 10'000'000'000;
      options.world.forward.queue_limit_bytes = 1 << 20;
      options.world.forward.loss = seed == 3 ? 0.01 : 0;
      TcpWorld pair(options);
      ASSERT_TRUE(pair.run_until_connected()) << pair.world.why();
      ASSERT_TRUE(pair.world.run_until([&] { return pair.server.received() > 5'000'000; }));
      pair.world.wire(0).set_path_mtu(mtu);
      pair.world.wire(1).set_path_mtu(mtu);
      ASSERT_TRUE(pair.world.run_until([&] { return pair.is_all_delivered(); }, 5s))
          << pair.world.why();
      EXPECT_LE(pair.world.now() - TimePoint(1s), 600ms) << mtu << ", seed " << seed;
      ASSERT_TRUE(pair.world.run_for(3s)) << pair.world.why();
      EXPECT_EQ(pair.client_stack.counters().path_mtu_cuts, 1U);
      EXPECT_TRUE(pair.finish()) << pair.world.why();
    }
  }
}

// Congestion that loses a third of all frames looks the same for a while, and must not shrink
// packets.
TEST(Ends, HeavyLossIsNotTakenForASmallPathMtu) {
  std::uint64_t cuts = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    TcpWorldOptions options = small(300'000, 0);
    options.stack.mtu_bytes = 9000;
    options.world.seed = seed;
    options.world.forward.loss = 0.35;
    TcpWorld pair(options);
    ASSERT_TRUE(pair.connect());
    (void)pair.world.run_until(
        [&] { return pair.client.error().has_value() || pair.is_all_delivered(); }, 30s);
    cuts += pair.client_stack.counters().path_mtu_cuts;
  }
  EXPECT_EQ(cuts, 0U);
}

TEST(Ends, HeldFramesStayInsideTheirShare) {
  TcpWorldOptions options = small(10'000'000, 0);
  options.stack.max_held_bytes = 20 * 10240;
  options.world.forward.loss = 0.02;
  TcpWorld pair(options);
  std::size_t most_held = 0;
  pair.world.add_invariant([&] {
    most_held = std::max(most_held, pair.world.held_frames());
    return pair.world.held_frames() > 20 ? std::string("more frames held than allowed")
                                         : std::string();
  });
  ASSERT_TRUE(pair.run_until_connected()) << pair.world.why();
  ASSERT_TRUE(pair.world.run_until([&] { return pair.is_all_delivered(); })) << pair.world.why();
  EXPECT_GT(most_held, 0U);
  EXPECT_TRUE(pair.finish()) << pair.world.why() << " held " << pair.world.held_frames();
}

TEST(Ends, ASecondPeerIsServedWhenTheFirstIsGone) {
  TcpWorld pair(small(1000, 1000));
  ASSERT_TRUE(pair.run_until_connected()) << pair.world.why();
  ASSERT_TRUE(pair.finish()) << pair.world.why();
  App again(pair.client_data, pair.server_data);
  App listener(pair.server_data, pair.client_data);
  pair.server_stack.unlisten(kPort);
  ASSERT_TRUE(pair.server_stack.listen(kPort, listener));
  ASSERT_TRUE(pair.client_stack.connect(pair.world.now(), {TcpWorld::address(1), kPort}, again));
  ASSERT_TRUE(pair.world.run_until([&] {
    return again.has_received_all() && listener.has_received_all();
  })) << pair.world.why();
  again.close();
  listener.close();
  EXPECT_TRUE(pair.world.run_until_idle()) << pair.world.why();
}

}  // namespace
}  // namespace ztcp::sim
