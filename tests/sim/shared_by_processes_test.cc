// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Hosts whose processes share a NIC, each with a stack and some of the NIC's queues: a connection
// finds a port that leads its segments to the right stack at both ends.
#include <algorithm>
#include <array>
#include <chrono>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "core/nic_slot.h"
#include "tests/sim/app.h"
#include "tests/sim/shared_nic.h"
#include "tests/sim/world.h"
#include "transport/tcp/stack.h"
#include "transport/wire/frame_parser.h"

namespace ztcp::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::uint16_t kSharedPort = 7471;
constexpr std::size_t kSharedQueues = 8;

// The queues of a slot without a process are silent, as behind a firewall.
class SharingHost {
 public:
  SharingHost(std::size_t host, std::uint16_t slots, std::size_t processes, std::uint64_t seed)
      : slots_(slots), spread_(random_spread(kSharedQueues, seed * 2 + host)) {
    tcp::StackConfig config;
    config.mac = MacAddress{{2, 0, 0, 0, 0, static_cast<std::uint8_t>(host + 1)}};
    config.address = {Ipv4Address{0x0a4d0101 + static_cast<std::uint32_t>(host)}, 24};
    config.max_connections = 32;
    config.shares_nic = slots > 1;
    config.ephemeral_port_first = 61000;
    config.ephemeral_port_last = 65535;
    for (std::size_t i = 0; i < processes; ++i)
      stacks.push_back(std::make_unique<tcp::Stack>(config, std::array{seed, 2 * i + host}));
  }

  Endpoint listening(std::size_t process) const {
    const NicSlot slot{static_cast<std::uint16_t>(process), slots_};
    return {stacks[process]->address(), slot.listen_port(kSharedPort)};
  }

  void on_frames(TimePoint now, std::span<RxFrame> frames) {
    for (RxFrame& frame : frames) {
      const auto parsed = wire::parse_frame(frame);
      if (parsed.kind != wire::FrameKind::kTcp) {  // ARP, which is the kernel's.
        for (const auto& stack : stacks) stack->on_frames(now, std::span(&frame, 1));
        continue;
      }
      const std::size_t queue =
          spread_->queue_of({parsed.ip.source, parsed.tcp.source_port},
                            {parsed.ip.destination, parsed.tcp.destination_port});
      for (std::size_t i = 0; i < stacks.size(); ++i)
        if (NicSlot{static_cast<std::uint16_t>(i), slots_}.has_queue(
                static_cast<std::uint32_t>(queue)))
          stacks[i]->on_frames(now, std::span(&frame, 1));
    }
  }
  void on_timers(TimePoint now) {
    for (const auto& stack : stacks) stack->on_timers(now);
  }
  std::size_t collect(TimePoint now, std::span<TxFrame> out) {
    std::size_t count = 0;
    for (const auto& stack : stacks) count += stack->collect(now, out.subspan(count));
    return count;
  }
  TimePoint next_deadline() const {
    TimePoint next = kNever;
    for (const auto& stack : stacks) next = std::min(next, stack->next_deadline());
    return next;
  }
  std::size_t take_released(std::span<RxFrame> out) {
    std::size_t count = 0;
    for (const auto& stack : stacks) count += stack->take_released(out.subspan(count));
    return count;
  }

  std::vector<std::unique_ptr<tcp::Stack>> stacks;

 private:
  const std::uint16_t slots_;
  const std::shared_ptr<const wire::ReceiveSpread> spread_;
};

struct Sharing {
  std::uint16_t slots = 1;
  std::size_t processes = 1;
};

class SharingWorld {
 public:
  SharingWorld(Sharing dials, Sharing listens, std::uint64_t seed,
               const link::Impairment& cable = {.delay = 20us})
      : hosts{SharingHost(0, dials.slots, dials.processes, seed),
              SharingHost(1, listens.slots, listens.processes, seed)},
        peer_shares_(listens.slots > 1),
        world(hosts[0], hosts[1], {.forward = cable, .backward = cable, .seed = seed}) {}

  // Both ends send.
  [[nodiscard]] bool transfer(std::size_t from, std::size_t to) {
    App client(there_, back_);
    App server(back_, there_);
    tcp::Stack& listener = *hosts[1].stacks[to];
    const Endpoint at = hosts[1].listening(to);
    if (!listener.listen(at.port, server)) return false;
    const auto stream = hosts[0].stacks[from]->connect(world.now(), at, client, peer_shares_);
    if (!stream) return false;
    client.attach(**stream);
    const bool done = world.run_until([&] {
      return client.error() || (client.has_received_all() && server.has_received_all() &&
                                client.is_all_acked() && server.is_all_acked());
    });
    listener.unlisten(at.port);
    error = client.error();
    client.close();
    server.close();
    return done && !error && client.violation().empty() && server.violation().empty() &&
           world.run_for(2s);
  }
  std::uint64_t passed_over() const {
    std::uint64_t sum = 0;
    for (const auto& stack : hosts[0].stacks) sum += stack->counters().ports_passed_over;
    return sum;
  }

  std::array<SharingHost, 2> hosts;
  std::optional<Error> error;

 private:
  const bool peer_shares_;
  const Bytes there_ = pattern(60'000, 1);
  const Bytes back_ = pattern(30'000, 2);

 public:
  World<SharingHost> world;
};

TEST(SharedByProcesses, EachReachesEachOfTheOtherHost) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    SharingWorld pair({.slots = 4, .processes = 4}, {.slots = 4, .processes = 4}, seed,
                      {.loss = seed % 2 == 0 ? 0.01 : 0.0, .delay = 20us, .jitter = 10us});
    for (std::size_t from = 0; from < 4; ++from)
      for (std::size_t to = 0; to < 4; ++to)
        ASSERT_TRUE(pair.transfer(from, to))
            << pair.world.why() << " seed " << seed << " from " << from << " to " << to;
    EXPECT_GT(pair.passed_over(), 16U);
    EXPECT_LT(pair.passed_over(), 16U * 16 * 3);
  }
}

TEST(SharedByProcesses, EightProcessesAtBothEnds) {
  SharingWorld pair({.slots = 8, .processes = 8}, {.slots = 8, .processes = 8}, 1);
  for (std::size_t from = 0; from < 8; ++from)
    ASSERT_TRUE(pair.transfer(from, 7 - from)) << pair.world.why() << " from " << from;
}

TEST(SharedByProcesses, QueuesOfFreeSlotsMayBeSilent) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    SharingWorld pair({.slots = 8, .processes = 1}, {.slots = 8, .processes = 1}, seed);
    ASSERT_TRUE(pair.transfer(0, 0)) << pair.world.why();
  }
}

TEST(SharedByProcesses, OneEndAloneMayShare) {
  SharingWorld dials({.slots = 4, .processes = 4}, {}, 1);
  SharingWorld listens({}, {.slots = 4, .processes = 4}, 1);
  for (std::size_t i = 0; i < 4; ++i) {
    EXPECT_TRUE(dials.transfer(i, 0)) << dials.world.why();
    EXPECT_TRUE(listens.transfer(0, i)) << listens.world.why();
  }
}

// Much longer than the first answers are waited for.
TEST(SharedByProcesses, ASlowPathIsNotTakenForAWrongPort) {
  SharingWorld pair({.slots = 2, .processes = 2}, {.slots = 2, .processes = 2}, 1, {.delay = 40ms});
  ASSERT_TRUE(pair.transfer(0, 1)) << pair.world.why();
  EXPECT_LT(pair.passed_over(), 100U) << "the first port whose answer comes is taken";
}

TEST(SharedByProcesses, AListenerThatIsGoneRefusesAtLast) {
  SharingWorld pair({.slots = 4, .processes = 4}, {.slots = 4, .processes = 4}, 1);
  App client({}, {});
  const auto stream =
      pair.hosts[0].stacks[1]->connect(pair.world.now(), pair.hosts[1].listening(2), client, true);
  ASSERT_TRUE(stream);
  client.attach(**stream);
  ASSERT_TRUE(pair.world.run_until([&] { return client.error().has_value(); }));
  EXPECT_TRUE(client.error()->code == Errc::kRefused || client.error()->code == Errc::kTimedOut);
}

TEST(SharedByProcesses, ANicOfOneProcessRefusesAtOnce) {
  SharingWorld pair({}, {}, 1);
  App client({}, {});
  const auto stream =
      pair.hosts[0].stacks[0]->connect(pair.world.now(), pair.hosts[1].listening(0), client, false);
  ASSERT_TRUE(stream);
  client.attach(**stream);
  ASSERT_TRUE(pair.world.run_until([&] { return client.error().has_value(); }));
  EXPECT_EQ(client.error()->code, Errc::kRefused);
  EXPECT_EQ(pair.passed_over(), 0U);
}

}  // namespace
}  // namespace ztcp::sim
