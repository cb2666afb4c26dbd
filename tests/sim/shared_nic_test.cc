// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Stacks that share a NIC, each on its own queue: connections choose source ports that bring the
// answers to their stack's queue, and where no port does, the other stacks hand the frames over.
#include "tests/sim/shared_nic.h"

#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/sim/app.h"
#include "tests/sim/world.h"
#include "transport/tcp/source_ports.h"
#include "transport/tcp/stack.h"

namespace ztcp::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::uint16_t kPort = 7471;
constexpr std::size_t kSentBytes = 300'000;

enum class Nic {
  kTold,       // It reports its spread truly.
  kUntold,     // It spreads and does not report how.
  kLying,      // It reports another spread than it has.
  kHosts,      // It spreads by addresses alone, and does not report it.
  kToldHosts,  // It spreads by addresses alone, and reports it.
  kOneQueue,   // All frames come to the last queue.
  kIpv6,       // Its hosts have IPv6 addresses, and it reports its spread truly.
};

tcp::StackConfig host_config(std::size_t host, bool is_ipv6 = false) {
  tcp::StackConfig config;
  config.mac = MacAddress{{2, 0, 0, 0, 0, static_cast<std::uint8_t>(host + 1)}};
  config.address = {Ipv4Address{0x0a4d0101 + static_cast<std::uint32_t>(host)}, 24};
  if (is_ipv6) config.address = {{0xfd00ULL << 48, 0x101 + host}, 64};
  config.max_connections = 32;
  return config;
}

// One host with several stacks behind one NIC, another with one.
class SharedNicWorld {
 public:
  SharedNicWorld(Nic nic, std::uint8_t count, std::uint64_t seed,
                 const link::Impairment& cable = {.delay = 20us})
      : is_ipv6(nic == Nic::kIpv6), other(host_config(1, is_ipv6), {3, seed}) {
    const auto real = random_spread(count, seed);
    for (std::uint8_t i = 0; i < count; ++i) {
      tcp::StackConfig config = host_config(0, is_ipv6);
      config.shard = {.index = i, .count = count, .spread = nullptr};
      if (nic == Nic::kTold || nic == Nic::kIpv6) config.shard.spread = real;
      if (nic == Nic::kToldHosts) {
        const auto hosts = std::make_shared<wire::ReceiveSpread>(*real);
        hosts->hashes_ports = false;
        config.shard.spread = hosts;
      }
      if (nic == Nic::kLying) config.shard.spread = random_spread(count, seed + 1000);
      stacks.push_back(std::make_unique<tcp::Stack>(config, std::array{seed, std::uint64_t{i}}));
    }
    std::vector<tcp::Stack*> nodes;
    for (const auto& stack : stacks) nodes.push_back(stack.get());
    const auto spread = [=](Endpoint source, Endpoint destination) -> std::size_t {
      if (nic == Nic::kOneQueue) return count - 1U;
      if (nic == Nic::kHosts || nic == Nic::kToldHosts) source.port = destination.port = 0;
      return real->queue_of(source, destination);
    };
    shared = std::make_unique<SharedNic<tcp::Stack>>(std::move(nodes), spread, seed);
    ends = std::make_unique<SharedNic<tcp::Stack>>(
        std::vector{&other}, [](Endpoint, Endpoint) { return std::size_t{0}; }, seed);
    world = std::make_unique<World<SharedNic<tcp::Stack>>>(
        *shared, *ends, WorldOptions{.forward = cable, .backward = cable, .seed = seed});
  }

  // Transfers between that stack and the other host; both ends send.
  [[nodiscard]] bool transfer(std::size_t from) {
    static_cast<void>(other.listen(kPort, *begin_pair().second));
    App* const client = clients.back().get();
    App* const server = servers.back().get();
    const auto stream = stacks[from]->connect(
        world->now(), {host_config(1, is_ipv6).address.address, kPort}, *client);
    if (!stream) return false;
    client->attach(**stream);
    const bool done = world->run_until([&] {
      return client->has_received_all() && server->has_received_all() && client->is_all_acked() &&
             server->is_all_acked();
    });
    other.unlisten(kPort);
    client->close();
    server->close();
    return done && client->violation().empty() && server->violation().empty();
  }
  std::pair<App*, App*> begin_pair() {
    clients.push_back(std::make_unique<App>(there, back));
    servers.push_back(std::make_unique<App>(back, there));
    return {clients.back().get(), servers.back().get()};
  }
  std::uint64_t passed_over() const {
    std::uint64_t sum = 0;
    for (const auto& stack : stacks) sum += stack->counters().ports_passed_over;
    return sum;
  }

  Bytes there = pattern(kSentBytes, 1);
  Bytes back = pattern(kSentBytes / 2, 2);
  std::vector<std::unique_ptr<App>> clients;
  std::vector<std::unique_ptr<App>> servers;
  std::vector<std::unique_ptr<tcp::Stack>> stacks;
  const bool is_ipv6;
  tcp::Stack other;
  std::unique_ptr<SharedNic<tcp::Stack>> shared;
  std::unique_ptr<SharedNic<tcp::Stack>> ends;
  std::unique_ptr<World<SharedNic<tcp::Stack>>> world;
};

class SharedNics : public testing::TestWithParam<Nic> {};
constexpr std::array kNames = {"told",       "untold",    "lying", "hosts",
                               "told_hosts", "one_queue", "ipv6"};
INSTANTIATE_TEST_SUITE_P(Kinds, SharedNics,
                         testing::Values(Nic::kTold, Nic::kUntold, Nic::kLying, Nic::kHosts,
                                         Nic::kToldHosts, Nic::kOneQueue, Nic::kIpv6),
                         [](const auto& row) {
                           return kNames[static_cast<std::size_t>(row.param)];
                         });

// With every kind of NIC all bytes arrive at every stack, and no frame is left behind.
TEST_P(SharedNics, EveryStackTransfersItsBytes) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    SharedNicWorld pair(GetParam(), 4, seed,
                        {.loss = seed % 2 == 0 ? 0.01 : 0.0, .delay = 20us, .jitter = 10us});
    for (std::size_t from = 0; from < pair.stacks.size(); ++from)
      ASSERT_TRUE(pair.transfer(from)) << pair.world->why() << " seed " << seed << " from " << from;
    ASSERT_TRUE(pair.world->run_until_idle()) << pair.world->why();
    EXPECT_EQ(pair.world->held_frames(), 0U);
    for (const auto& stack : pair.stacks) EXPECT_EQ(stack->counters().connections_failed, 0U);
  }
}

// The first port is right and no segment is handed over; the frames handed over are ARP answers,
// which every stack gets.
TEST(SharedNicTest, PortsAreComputedFromTheReportedSpread) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SharedNicWorld pair(Nic::kTold, 4, seed);
    for (std::size_t from = 0; from < 4; ++from) ASSERT_TRUE(pair.transfer(from));
    EXPECT_EQ(pair.passed_over(), 0U);
    EXPECT_EQ(pair.other.counters().connections_accepted, 4U);
    const std::uint64_t arp_frames = pair.shared->handed_over;
    EXPECT_EQ(arp_frames % 3, 0U) << "each goes round once";
    EXPECT_LE(arp_frames, 3 * 6U);
  }
}

// Each attempt costs a round trip; once a port is found nothing is handed over.
TEST(SharedNicTest, PortsAreTriedWhenTheSpreadIsUnknown) {
  std::uint64_t tries = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SharedNicWorld pair(Nic::kUntold, 4, seed);
    ASSERT_TRUE(pair.transfer(seed % 4));
    const std::uint64_t before = pair.shared->handed_over;
    tries += pair.passed_over();
    ASSERT_TRUE(pair.transfer(seed % 4));
    const std::uint64_t more = pair.passed_over();
    // A SYN-ACK each, and perhaps ARP.
    EXPECT_LE(pair.shared->handed_over - before, 3 * more + 6);
  }
  EXPECT_GT(tries, 20U);
  EXPECT_LT(tries, 20U * 8);
}

TEST(SharedNicTest, AFalseSpreadIsDistrustedSoon) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SharedNicWorld pair(Nic::kLying, 4, seed);
    ASSERT_TRUE(pair.transfer(1));
    EXPECT_LT(pair.passed_over(), 40U);
  }
}

// No port is right. The frames are handed over, and the next connections try fewer ports.
TEST(SharedNicTest, FramesAreHandedOverWhenNoPortIsRight) {
  SharedNicWorld pair(Nic::kOneQueue, 2, 1);
  ASSERT_TRUE(pair.transfer(0));
  EXPECT_EQ(pair.passed_over(), tcp::SourcePorts::kMostTries - 1U);
  EXPECT_GT(pair.shared->handed_over, 150U);
  ASSERT_TRUE(pair.transfer(0));
  EXPECT_EQ(pair.passed_over(), tcp::SourcePorts::kMostTries + tcp::SourcePorts::kFewTries - 2U);
  const std::uint64_t before = pair.shared->handed_over;
  ASSERT_TRUE(pair.transfer(1));
  EXPECT_LE(pair.shared->handed_over, before + 6)
      << "frames of that queue come directly, except ARP";
}

// The reported spread ignores ports: attempts would be in vain.
TEST(SharedNicTest, NoPortIsTriedWhenTheSpreadIgnoresPorts) {
  for (std::uint64_t seed = 1; seed <= 10; ++seed) {
    SharedNicWorld pair(Nic::kToldHosts, 4, seed);
    for (std::size_t from = 0; from < 4; ++from) ASSERT_TRUE(pair.transfer(from));
    EXPECT_EQ(pair.passed_over(), 0U);
  }
}

// Frames that wait for a lost one must not take the memory that it needs.
TEST(SharedNicTest, ALostFrameArrivesWhileHandedOverFramesAreHeld) {
  std::uint64_t not_held = 0;
  for (std::uint64_t seed = 1; seed <= 8; ++seed) {
    SharedNicWorld pair(Nic::kOneQueue, 2, seed, {.loss = 0.01, .delay = 20us});
    pair.shared->most_away = 64;
    pair.back = pattern(1'000'000, 2);
    ASSERT_TRUE(pair.transfer(0)) << pair.world->why() << " seed " << seed;
    EXPECT_GT(pair.shared->handed_over, 600U);
    const tcp::Counters& counters = pair.stacks[0]->counters();
    not_held += counters.rx_dropped_of_others;
    EXPECT_EQ(counters.rx_dropped_no_memory, 0U) << "there is memory for every frame";
  }
  EXPECT_GT(not_held, 0U);
}

// The stack on the queue that the NIC chose answers an incoming connection from first to last.
TEST(SharedNicTest, IncomingConnectionsStayWhereTheyArrive) {
  SharedNicWorld pair(Nic::kUntold, 4, 5);
  for (int i = 0; i < 8; ++i) {
    const auto [server, client] = pair.begin_pair();
    App& here = *server;
    for (const auto& stack : pair.stacks) ASSERT_TRUE(stack->listen(kPort, here));
    const auto stream =
        pair.other.connect(pair.world->now(), {host_config(0).address.address, kPort}, *client);
    ASSERT_TRUE(stream);
    client->attach(**stream);
    ASSERT_TRUE(pair.world->run_until([&, client = client] {
      return here.has_received_all() && client->has_received_all();
    })) << pair.world->why();
    EXPECT_TRUE(here.violation().empty()) << here.violation();
    for (const auto& stack : pair.stacks) stack->unlisten(kPort);
    client->close();
    here.close();
  }
  std::size_t with_connections = 0;
  for (const auto& stack : pair.stacks)
    if (stack->counters().connections_accepted != 0) ++with_connections;
  EXPECT_GT(with_connections, 1U);
  EXPECT_LE(pair.shared->handed_over, 3 * 6U) << "ARP";
}

// One answer to an ARP request for our address, and one announcement, with any number of stacks.
TEST(SharedNicTest, TheNetworkSeesOneHost) {
  SharedNicWorld pair(Nic::kTold, 4, 3);
  std::size_t announcements = 0;
  std::size_t answers = 0;
  pair.world->wire(0).drop_if([&](const Bytes& frame) {
    RxFrame view;
    view.head = frame;
    const auto parsed = wire::parse_frame(view);
    if (parsed.kind != wire::FrameKind::kArp) return false;
    (parsed.ethernet.destination == kBroadcastMac ? announcements : answers) += 1;
    return false;
  });
  ASSERT_TRUE(pair.world->run_for(1ms));
  EXPECT_EQ(announcements, 1U);
  const auto [server, client] = pair.begin_pair();
  const auto stream =
      pair.other.connect(pair.world->now(), {host_config(0).address.address, kPort}, *client);
  ASSERT_TRUE(stream);
  client->attach(**stream);
  ASSERT_TRUE(pair.world->run_until([&, client = client] { return client->error().has_value(); }));
  EXPECT_EQ(client->error()->code, Errc::kRefused) << "by the RST of a single stack";
  EXPECT_EQ(answers, 1U);
  std::uint64_t resets = 0;
  for (const auto& stack : pair.stacks) resets += stack->counters().tx_resets;
  EXPECT_EQ(resets, 1U);
}

// A segment to an unused port of ours is refused once, by the stack that the port belongs to.
TEST(SharedNicTest, SegmentsToUnusedPortsAreRefusedOnce) {
  SharedNicWorld pair(Nic::kUntold, 4, 3);
  for (std::uint16_t port = 40000; port < 40008; ++port) {
    const auto [server, client] = pair.begin_pair();
    const auto stream =
        pair.other.connect(pair.world->now(), {host_config(0).address.address, port}, *client);
    ASSERT_TRUE(stream);
    client->attach(**stream);
    ASSERT_TRUE(
        pair.world->run_until([&, client = client] { return client->error().has_value(); }));
  }
  std::uint64_t resets = 0;
  std::uint64_t strays = 0;
  for (const auto& stack : pair.stacks) {
    resets += stack->counters().tx_resets;
    strays += stack->counters().rx_no_connection;
  }
  EXPECT_EQ(resets, 8U);
  EXPECT_EQ(strays, 8U);
}

}  // namespace
}  // namespace ztcp::sim
