// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Two whole engines over bad cables: NCCL messages over sessions over TCP. Every message arrives
// once and whole in the buffer posted for it, however frames and flows fail, and a receiver never
// takes more unposted bytes than it allowed.
#include "transport/ustack/engine/engine.h"

#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include <gtest/gtest.h>

#include "tests/sim/engine_world.h"
#include "transport/msg/reason.h"
#include "transport/wire/frame_parser.h"

namespace ztcp::sim {
namespace {

using namespace std::chrono_literals;

class Sessions : public testing::TestWithParam<Case> {};

TEST_P(Sessions, DeliverEveryMessageOnce) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    EngineWorld pair(GetParam(), seed, 60);
    ASSERT_TRUE(pair.connect());
    ASSERT_TRUE(pair.world.run_until([&] { return pair.is_all_done(); }))
        << pair.world.why() << "\n sent " << pair.sender.done << " received " << pair.receiver.done;
    EXPECT_TRUE(pair.close()) << pair.world.why() << " held " << pair.world.held_frames();
    EXPECT_TRUE(pair.receiver.are_finished_buffers_untouched());
    if (GetParam().workers != 0) {
      EXPECT_GT(pair.server_workers.done, 50U);
      EXPECT_TRUE(pair.server.copies()->is_idle());
    }
  }
}

constexpr link::Impairment kEverything{.loss = 0.02,
                                       .duplicate = 0.02,
                                       .reorder = 0.02,
                                       .corrupt = 0.01,
                                       .delay = 10us,
                                       .jitter = 20us,
                                       .reorder_delay = 200us,
                                       .rate_bits_per_second = 10'000'000'000,
                                       .queue_limit_bytes = 128U << 10};
INSTANTIATE_TEST_SUITE_P(
    Cables, Sessions,
    testing::Values(Case{"clean", {.delay = 10us}},
                    Case{"one_flow", {.loss = 0.01, .delay = 10us}, 1},
                    Case{"loss_1_percent", {.loss = 0.01, .delay = 10us}},
                    Case{"loss_5_percent", {.loss = 0.05, .delay = 10us}},
                    Case{"reordered", {.reorder = 0.05, .delay = 10us, .reorder_delay = 100us}},
                    Case{"duplicated", {.duplicate = 0.1, .delay = 10us, .jitter = 20us}},
                    Case{"corrupted", {.corrupt = 0.02, .delay = 10us}},
                    Case{"late_receives", {.delay = 10us}, 4, 300us},
                    Case{"late_receives_and_loss", {.loss = 0.02, .delay = 10us}, 4, 300us},
                    Case{"everything", kEverything, 4, 50us},
                    Case{"workers", {.delay = 10us}, 4, {}, 3s, 3},
                    Case{"one_worker_and_loss", {.loss = 0.02, .delay = 10us}, 4, 300us, 3s, 1},
                    Case{"workers_and_everything", kEverything, 4, 50us, 3s, 4}),
    [](const auto& test) { return test.param.name; });

// NCCL closes both ends of a connection in the same moment: their byes cross, and each end refuses
// the other's flows after its own close. A process that ends must not wait for that.
TEST(Sessions, SimultaneousCloseLeavesNothingToWaitFor) {
  for (std::uint64_t seed = 1; seed <= 3; ++seed) {
    EngineWorld pair(Case{"", {.delay = 10us}}, seed, 20);
    ASSERT_TRUE(pair.connect());
    ASSERT_TRUE(pair.world.run_until([&] { return pair.is_all_done(); })) << pair.world.why();
    pair.sender.session->close();
    pair.receiver.session->close();
    ASSERT_TRUE(pair.world.run_for(1ms)) << pair.world.why();
    EXPECT_TRUE(pair.sender.closed);
    EXPECT_TRUE(pair.receiver.closed);
    EXPECT_EQ(pair.client.unfinished(), 0U);
    EXPECT_EQ(pair.server.unfinished(), 0U);
    EXPECT_EQ(pair.client.stack().counters().rto_fired + pair.server.stack().counters().rto_fired,
              0U);
  }
}

// Cuts, in both directions, the flow of the next segment with so much payload. Returns its source
// port; 0 until then.
std::shared_ptr<std::uint16_t> cut_next_flow(EngineWorld& pair, std::size_t least_payload_bytes) {
  auto doomed = std::make_shared<std::uint16_t>(0);
  const auto is_doomed = [=](const Bytes& frame, bool forward) {
    RxFrame view;
    view.head = frame;
    const auto parsed = wire::parse_frame(view);
    if (parsed.kind != wire::FrameKind::kTcp) return false;
    const std::uint16_t port = forward ? parsed.tcp.source_port : parsed.tcp.destination_port;
    if (*doomed == 0 && forward && parsed.payload_bytes >= least_payload_bytes) *doomed = port;
    return port == *doomed;
  };
  pair.world.wire(0).drop_if([=](const Bytes& frame) { return is_doomed(frame, true); });
  pair.world.wire(1).drop_if([=](const Bytes& frame) { return is_doomed(frame, false); });
  return doomed;
}

// One flow's packets are lost for good, as behind a dead link of an ECMP group: its TCP gives up,
// the session dials it again from another port, and no byte is lost or doubled.
TEST(Sessions, AFlowThatDiesIsDialledAgain) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    EngineWorld pair(Case{"", {.delay = 10us}, 4, {}, 3s, seed <= 6 ? 0U : 3U}, seed, 60);
    ASSERT_TRUE(pair.connect());
    ASSERT_TRUE(pair.world.run_until([&] { return pair.receiver.done >= seed % 7 * 5; }))
        << pair.world.why();
    const auto doomed = cut_next_flow(pair, 1);
    ASSERT_TRUE(pair.world.run_until([&] { return pair.is_all_done(); }, 120s))
        << pair.world.why() << "\n sent " << pair.sender.done << " received " << pair.receiver.done;
    EXPECT_NE(*doomed, 0);
    EXPECT_TRUE(pair.receiver.are_finished_buffers_untouched());
  }
}

// TCP waits for eight seconds before it gives a flow up. Messages do not: those on that flow are
// delayed for its first timeouts only, because the other flows show that the peer is alive.
TEST(Sessions, ADeadFlowHoldsMessagesUpForAThirdOfASecond) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    EngineWorld pair(four_flows(), seed, 400);
    ASSERT_TRUE(pair.connect());
    ASSERT_TRUE(pair.world.run_until([&] { return are_four_up(pair); })) << pair.world.why();
    ASSERT_FALSE(pair.is_all_done());
    const auto doomed = cut_next_flow(pair, 1000);
    const auto longest = longest_standstill(pair);
    ASSERT_TRUE(longest) << pair.world.why();
    EXPECT_NE(*doomed, 0);
    EXPECT_LE(*longest, 300ms) << "seed " << seed;
    EXPECT_TRUE(pair.receiver.are_finished_buffers_untouched());
  }
}

// One of four paths is dead, chosen by the port: new ports may lead to it, too.
TEST(Sessions, ADeadPathAmongFourIsLeftWithinASecond) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    EngineWorld pair(four_flows(), seed, 400);
    ASSERT_TRUE(pair.connect());
    ASSERT_TRUE(pair.world.run_until([&] { return are_four_up(pair); })) << pair.world.why();
    ASSERT_FALSE(pair.is_all_done());
    for (std::size_t way = 0; way < 2; ++way)
      pair.world.wire(way).drop_if([way](const Bytes& frame) {
        RxFrame view;
        view.head = frame;
        const auto parsed = wire::parse_frame(view);
        if (parsed.kind != wire::FrameKind::kTcp) return false;
        return (way == 0 ? parsed.tcp.source_port : parsed.tcp.destination_port) % 4 == 0;
      });
    const auto longest = longest_standstill(pair);
    ASSERT_TRUE(longest) << pair.world.why();
    EXPECT_LE(*longest, 1s) << "seed " << seed;
    EXPECT_TRUE(pair.receiver.are_finished_buffers_untouched());
  }
}

// The sender's packets have its DSCP from the first SYN on, on redialled flows, too; the receiver's
// once it knows the session.
TEST(Sessions, EachEndHasItsOwnDscp) {
  EngineWorld pair(four_flows(), 1, 1000);
  pair.receiver.dscp = 10;
  std::array<std::set<int>, 2> seen;
  const auto watch = [&](std::size_t way, const Bytes& frame) {
    RxFrame view;
    view.head = frame;
    const auto parsed = wire::parse_frame(view);
    if (parsed.kind == wire::FrameKind::kTcp) seen[way].insert(parsed.ip.dscp);
    return false;
  };
  for (std::size_t way = 0; way < 2; ++way)
    pair.world.wire(way).drop_if([=](const Bytes& frame) { return watch(way, frame); });
  ASSERT_TRUE(pair.connect(46));
  ASSERT_TRUE(pair.world.run_until([&] { return are_four_up(pair); })) << pair.world.why();
  EXPECT_EQ(seen[0], std::set<int>{46});
  EXPECT_EQ(seen[1], (std::set<int>{0, 10})) << "the NIC's until the session is known";
  seen[1].clear();
  const std::size_t soon = pair.receiver.done + 50;
  ASSERT_TRUE(pair.world.run_until([&] { return pair.receiver.done >= soon; })) << pair.world.why();
  EXPECT_EQ(seen[1], std::set<int>{10});
  const auto doomed = std::make_shared<int>(0);
  pair.world.wire(1).drop_if([=](const Bytes& frame) {
    watch(1, frame);
    RxFrame view;
    view.head = frame;
    const auto parsed = wire::parse_frame(view);
    if (*doomed == 0) *doomed = parsed.tcp.destination_port;
    return parsed.tcp.destination_port == *doomed;
  });
  ASSERT_TRUE(pair.world.run_until([&] { return pair.is_all_done(); }, 60s)) << pair.world.why();
  EXPECT_GE(pair.client.stack().counters().connections_opened, 5U) << "one was redialled";
  EXPECT_EQ(seen[0], std::set<int>{46});
}

// Sessions of one flow each: another session with the same peer shows that it is alive.
TEST(Sessions, AnotherSessionShowsThatAPathIsDead) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    Case one_flow = four_flows();
    one_flow.flows = 1;
    EngineWorld pair(one_flow, seed, 400);
    std::vector<Message> more = messages(400, seed + 50);
    SendUser second(more);
    ReceiveUser second_receiver(more, {});
    const msg::Cookie cookie{std::byte{9}};
    ASSERT_TRUE(pair.server.sessions().acceptor().add_listener(cookie, second_receiver));
    second.session = &pair.client.sessions().connect(
        {Ipv4Address{0x0a4d0102}, EngineWorld::config(one_flow, 1).listen_port}, cookie, second);
    pair.world.set_actor(0, [&](TimePoint now) {
      pair.sender.post(now);
      second.post(now);
      return kNever;
    });
    pair.world.set_actor(1, [&](TimePoint now) {
      return std::min(pair.receiver.post(now), second_receiver.post(now));
    });
    ASSERT_TRUE(pair.connect());
    ASSERT_TRUE(pair.world.run_until([&] {
      return pair.receiver.done >= 50 && second_receiver.done >= 1;
    })) << pair.world.why();
    const auto doomed = cut_next_flow(pair, 1000);
    const auto both_done = [&] { return pair.is_all_done() && second_receiver.done == 400; };
    const TimePoint cut = pair.world.now();
    ASSERT_TRUE(pair.world.run_until(both_done, 120s)) << pair.world.why();
    EXPECT_NE(*doomed, 0);
    EXPECT_LE(pair.world.now() - cut, 400ms) << "seed " << seed;
    EXPECT_TRUE(pair.receiver.are_finished_buffers_untouched());
  }
}

// A session of one flow, without another session to compare with: the flow's own port decides
// between two paths, of which one is dead.
TEST(Sessions, ALoneFlowLeavesADeadPathWithinASecond) {
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    Case one_flow = four_flows();
    one_flow.flows = 1;
    EngineWorld pair(one_flow, seed, 400);
    ASSERT_TRUE(pair.connect());
    ASSERT_TRUE(pair.world.run_until([&] { return pair.receiver.done >= 50; }));
    const auto path = [seed](std::uint16_t port) { return (port + seed) * 0x9e3779b1U >> 31 & 1U; };
    std::optional<unsigned> dead;
    pair.world.wire(0).drop_if([&](const Bytes& frame) {
      RxFrame view;
      view.head = frame;
      const auto parsed = wire::parse_frame(view);
      if (parsed.kind != wire::FrameKind::kTcp) return false;
      if (!dead) dead = path(parsed.tcp.source_port);
      return path(parsed.tcp.source_port) == *dead;
    });
    const TimePoint cut = pair.world.now();
    ASSERT_TRUE(pair.world.run_until([&] { return pair.is_all_done(); }, 60s)) << pair.world.why();
    // Every second port uses the dead path, too.
    EXPECT_LE(pair.world.now() - cut, 700ms) << "seed " << seed;
    EXPECT_TRUE(pair.receiver.are_finished_buffers_untouched());
  }
}

// Both directions lose 40 % of their packets: timeouts in a row, but no path is better.
TEST(Sessions, ALoneFlowStaysOnACongestedPath) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    Case one_flow = four_flows();
    one_flow.flows = 1;
    EngineWorld pair(one_flow, seed, 60);
    ASSERT_TRUE(pair.connect());
    ASSERT_TRUE(pair.world.run_until([&] { return pair.receiver.done >= 5; }));
    const std::uint64_t accepted = pair.receiver.done;
    link::Dice dice(seed);
    for (const std::size_t way : {std::size_t{0}, std::size_t{1}})
      pair.world.wire(way).drop_if([&](const Bytes&) { return dice.chance(0.4); });
    EXPECT_TRUE(pair.world.run_for(3s)) << pair.world.why();
    EXPECT_GT(pair.receiver.done, accepted);
    EXPECT_EQ(pair.flow_events.redialled, 0) << "seed " << seed;
  }
}

// Its process does not run for a time, and its NIC's ring overflows.
TEST(Sessions, ALoneFlowOfAStoppedPeerStays) {
  for (const Duration stop : {300ms, 1000ms, 2500ms, 3500ms}) {
    Case one_flow = four_flows();
    one_flow.flows = 1;
    EngineWorld pair(one_flow, 1, 400);
    ASSERT_TRUE(pair.connect());
    ASSERT_TRUE(pair.world.run_until([&] { return pair.receiver.done >= 50; }));
    pair.world.wire(0).cut();
    pair.world.wire(1).cut();
    EXPECT_TRUE(pair.world.run_for(stop)) << pair.world.why();
    pair.world.wire(0).mend();
    pair.world.wire(1).mend();
    ASSERT_TRUE(pair.world.run_until([&] { return pair.is_all_done(); }, 60s)) << pair.world.why();
    EXPECT_EQ(pair.flow_events.redialled, 0);
  }
}

// All flows fall silent: the peer is stopped, or its whole network is down. No other port helps.
TEST(Sessions, APeerThatIsSilentOnAllFlowsIsNotRedialled) {
  EngineWorld pair(four_flows(), 1, 400);
  ASSERT_TRUE(pair.connect());
  ASSERT_TRUE(pair.world.run_until([&] { return are_four_up(pair); })) << pair.world.why();
  ASSERT_FALSE(pair.is_all_done());
  const std::uint64_t opened = pair.client.stack().counters().connections_opened;
  int syns = 0;
  int resets = 0;
  pair.world.wire(0).drop_if([&](const Bytes& frame) {
    RxFrame view;
    view.head = frame;
    const auto parsed = wire::parse_frame(view);
    if (parsed.kind == wire::FrameKind::kTcp && parsed.tcp.flags.has(wire::kSyn)) ++syns;
    if (parsed.kind == wire::FrameKind::kTcp && parsed.tcp.flags.has(wire::kRst)) ++resets;
    return true;
  });
  pair.world.wire(1).cut();
  EXPECT_TRUE(pair.world.run_for(3500ms)) << pair.world.why();
  EXPECT_EQ(resets, 0) << "no flow was given up";
  EXPECT_LE(syns, 16) << "one stream at a time looks for another path, less and less often";
  EXPECT_TRUE(pair.world.run_for(3s)) << pair.world.why();
  EXPECT_LE(syns, 4 * 10) << "four flows, their attempts and the repeats of each";
  pair.world.wire(0).drop_if({});
  pair.world.wire(1).mend();
  ASSERT_TRUE(pair.world.run_until([&] { return pair.is_all_done(); }, 60s)) << pair.world.why();
  EXPECT_LE(pair.client.stack().counters().connections_opened, opened + 4);
}

// No frame passes for a while, one way or both, and then all do again. TCP survives the short
// outages; in the others flows die, at each end at its own time, and are dialled again.
struct Outage {
  const char* name;
  bool forth;
  bool back;
  bool is_idle;  // Nothing is in flight when it begins.
};
class Outages : public testing::TestWithParam<Outage> {};

TEST_P(Outages, SessionsSurviveAnOutage) {
  const Outage& outage = GetParam();
  for (Duration length = 500ms; length <= 15s; length += 250ms) {
    EngineWorld pair(Case{"", {.delay = 10us}, 4, {}, 8s}, 3, 60);
    pair.sender.pause_at = 30;
    ASSERT_TRUE(pair.connect());
    ASSERT_TRUE(pair.world.run_until([&] { return pair.receiver.done >= 20; }));
    if (outage.is_idle) {
      ASSERT_TRUE(pair.world.run_until([&] { return pair.sender.done == 30; }));
    }
    if (outage.forth) pair.world.wire(0).cut();
    if (outage.back) pair.world.wire(1).cut();
    EXPECT_TRUE(pair.world.run_for(length)) << pair.world.why();
    pair.world.wire(0).mend();
    pair.world.wire(1).mend();
    pair.sender.pause_at = SIZE_MAX;
    EXPECT_TRUE(pair.world.run_until([&] { return pair.is_all_done(); }, 60s))
        << std::chrono::duration<double>(length).count() << " s: " << pair.world.why() << "\n sent "
        << pair.sender.done << " received " << pair.receiver.done;
    EXPECT_TRUE(pair.receiver.are_finished_buffers_untouched());
  }
}

INSTANTIATE_TEST_SUITE_P(Kinds, Outages,
                         testing::Values(Outage{"both_ways", true, true, false},
                                         Outage{"forth", true, false, false},
                                         Outage{"back", false, true, false},
                                         Outage{"idle", true, true, true}),
                         [](const auto& test) { return test.param.name; });

// The peer's host is gone: both sessions end with an error, in bounded time, and hold no frames.
TEST(Sessions, APeerThatVanishesFailsTheSession) {
  EngineWorld pair(Case{"", {.delay = 10us}}, 1, 200);
  ASSERT_TRUE(pair.connect());
  ASSERT_TRUE(pair.world.run_until([&] { return pair.receiver.done >= 5; })) << pair.world.why();
  pair.world.wire(0).cut();
  pair.world.wire(1).cut();
  const TimePoint cut = pair.world.now();
  // The failure is the outcome here, so it ends the run.
  EXPECT_FALSE(pair.world.run_until([&] { return false; }, 120s));
  EXPECT_TRUE(pair.sender.failed || pair.receiver.failed) << pair.world.why();
  EXPECT_LE(pair.world.now() - cut, 60s);
}

// A suspicion is checked with a probe: a NIC with a living process answers within a round trip.
TEST(Sessions, AProbeIsAnsweredByALivingProcess) {
  EngineWorld pair(Case{"", {.delay = 10us}}, 1, 20);
  ASSERT_TRUE(pair.connect());
  ASSERT_TRUE(pair.world.run_until([&] { return pair.is_all_done(); })) << pair.world.why();
  ASSERT_TRUE(pair.world.run_for(1s)) << pair.world.why();
  const IpAddress client = EngineWorld::config({}, 0).stack.address.address;
  const IpAddress server = EngineWorld::config({}, 1).stack.address.address;
  for (const bool from_client : {true, false}) {
    ustack::Engine& asking = from_client ? pair.client : pair.server;
    const IpAddress asked = from_client ? server : client;
    const TimePoint begun = pair.world.now();
    ASSERT_LT(asking.stack().heard_from(asked), begun);
    asking.stack().probe(asked);
    ASSERT_TRUE(pair.world.run_for(1ms)) << pair.world.why();
    EXPECT_GT(asking.stack().heard_from(asked), begun);
    EXPECT_EQ(asking.stack().heard_from(Ipv4Address{1}), TimePoint::min());
  }
  pair.world.wire(1).cut();
  const TimePoint cut = pair.world.now();
  pair.client.stack().probe(server);
  ASSERT_TRUE(pair.world.run_for(100ms)) << pair.world.why();
  EXPECT_LE(pair.client.stack().heard_from(server), cut);
}

// A process that ends with messages in flight notifies its peer. Any one frame of the notice may be
// lost: the peer still gets it, long before its silence timeout.
TEST(Sessions, TheEndOfAProcessReachesThePeerWithAnyFrameLost) {
  for (const std::size_t side : {0U, 1U}) {
    for (std::uint64_t lost = 0; lost < 8; ++lost) {
      SCOPED_TRACE(std::to_string(side) + " ends, lost " + std::to_string(lost));
      EngineWorld pair(Case{"", {.delay = 10us}}, lost + 1, 200);
      ASSERT_TRUE(pair.connect());
      ASSERT_TRUE(pair.world.run_until([&] { return pair.receiver.done >= 5; }))
          << pair.world.why();
      sim::Wire& wire = pair.world.wire(side);
      wire.drop_exactly({wire.counters().offered + lost});
      pair.world.set_actor(side, [](TimePoint) { return kNever; });
      const TimePoint ended = pair.world.now();
      if (side == 0) {
        pair.sender.session->leave(ended);
      } else {
        pair.receiver.session->leave(ended);
      }
      // The failure is the outcome here, so it ends the run.
      EXPECT_FALSE(pair.world.run_until([&] { return false; }, 120s));
      EXPECT_TRUE(side == 0 ? pair.receiver.failed : pair.sender.failed) << pair.world.why();
      EXPECT_EQ(side == 0 ? pair.receiver.session->failure_detail().reason
                          : pair.sender.session->failure_detail().reason,
                msg::Reason::kProcessEnded);
      EXPECT_LE(pair.world.now() - ended, 300ms);
      EXPECT_TRUE(pair.receiver.are_finished_buffers_untouched());
    }
  }
}

// An abort reaches the peer just so, over a network that loses any frame.
TEST(Sessions, AnAbortReachesThePeerWithAnyFrameLost) {
  for (const std::size_t side : {0U, 1U}) {
    for (std::uint64_t seed = 1; seed <= 20; ++seed) {
      SCOPED_TRACE(std::to_string(side) + " aborts, seed " + std::to_string(seed));
      EngineWorld pair(Case{"", {.loss = 0.03, .delay = 10us}}, seed, 200);
      ASSERT_TRUE(pair.connect());
      ASSERT_TRUE(pair.world.run_until([&] { return pair.receiver.done >= 5 * seed; }))
          << pair.world.why();
      pair.world.set_actor(side, [](TimePoint) { return kNever; });
      const TimePoint aborted = pair.world.now();
      if (side == 0)
        static_cast<void>(pair.sender.session->give_up(aborted));
      else
        pair.receiver.session->give_up();
      // The failure is the outcome here, so it ends the run.
      EXPECT_FALSE(pair.world.run_until([&] { return false; }, 120s));
      EXPECT_TRUE(side == 0 ? pair.receiver.failed : pair.sender.failed) << pair.world.why();
      EXPECT_EQ(side == 0 ? pair.receiver.session->failure_detail().reason
                          : pair.sender.session->failure_detail().reason,
                msg::Reason::kAborted);
      EXPECT_LE(pair.world.now() - aborted, 1s);
      EXPECT_TRUE(pair.receiver.are_finished_buffers_untouched());
    }
  }
}

}  // namespace
}  // namespace ztcp::sim
