// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Sessions between NICs of several queues, an engine at each: every flow of a session finds its
// queue, also when it is redialled, and every message arrives once.
#include <array>
#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/sim/shared_nic.h"
#include "tests/sim/world.h"
#include "transport/comms/shared_places.h"
#include "transport/ustack/engine/engine.h"

namespace ztcp::sim {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kMessageBytes = 400'000;
constexpr std::size_t kMessages = 6;
// Slow enough that further flows, which are dialled within a millisecond, find data to carry.
constexpr std::uint64_t kRate = 5'000'000'000;

// One session with both its ends.
class Connection final : public msg::SendOwner, public msg::RecvOwner, public msg::ListenerEvents {
 public:
  explicit Connection(std::uint8_t number) : cookie{std::byte{number}, std::byte{1}} {
    for (std::size_t i = 0; i < kMessages; ++i)
      out.push_back(pattern(kMessageBytes + i, number * 100U + i));
    for (const Bytes& bytes : out) in.emplace_back(bytes.size());
  }
  void post(TimePoint now) {
    for (; ready && posted < kMessages && posted < sent + 2; ++posted) {
      sends[posted].start(out[posted], 0, kUnmapped);
      sender->post(now, sends[posted]);
    }
    if (receiver == nullptr) return;
    if (!owned) receiver->set_owner(*this);
    owned = true;
    for (; wanted < kMessages && wanted < received + 2; ++wanted) {
      receives[wanted].start(in[wanted], 0);
      receiver->post(now, receives[wanted]);
    }
  }
  void on_ready(TimePoint) override { ready = true; }
  void on_done(msg::SendMessage&) override { ++sent; }
  void on_done(msg::RecvMessage&) override { ++received; }
  void on_session_failed(Error error) override { problem = describe(error.code); }
  void on_session_closed() override { ++closed; }
  void on_session(TimePoint, std::unique_ptr<msg::RecvSession> session) override {
    if (receiver != nullptr) problem = "a second session";
    receiver = std::move(session);
  }
  bool is_done() const { return sent == kMessages && received == kMessages; }

  const msg::Cookie cookie;
  std::vector<Bytes> out;
  std::vector<Bytes> in;
  std::array<msg::SendMessage, kMessages> sends;
  std::array<msg::RecvMessage, kMessages> receives;
  msg::SendSession* sender = nullptr;
  std::unique_ptr<msg::RecvSession> receiver;
  std::size_t posted = 0;
  std::size_t wanted = 0;
  std::size_t sent = 0;
  std::size_t received = 0;
  int closed = 0;
  bool ready = false;
  bool owned = false;
  std::string problem;
};

struct Host {
  Host(std::size_t number, std::uint8_t queues, bool told, std::uint64_t seed) {
    const auto spread = random_spread(queues, seed * 10 + number);
    places = std::make_shared<comms::SharedPlaces>(queues);
    for (std::uint8_t i = 0; i < queues; ++i) {
      ustack::EngineConfig config;
      config.stack.mac = MacAddress{{2, 0, 0, 0, 0, static_cast<std::uint8_t>(number + 1)}};
      config.stack.address = address(number);
      config.stack.mtu_bytes = 9000;
      config.stack.max_connections = 64;
      config.stack.tcp.user_timeout = 3s;
      config.stack.shard = {.index = i, .count = queues, .spread = told ? spread : nullptr};
      config.session.max_sessions = 16;
      config.secret = {seed * 100'000 + number * 10'000 + i * 1000U, 7};
      if (queues > 1) config.places = places;
      engines.push_back(std::make_unique<ustack::Engine>(config));
    }
    std::vector<ustack::Engine*> nodes;
    for (const auto& engine : engines) nodes.push_back(engine.get());
    nic = std::make_unique<SharedNic<ustack::Engine>>(
        std::move(nodes),
        [spread](Endpoint source, Endpoint destination) {
          return std::size_t{spread->queue_of(source, destination)};
        },
        seed);
  }
  static Ipv4Prefix address(std::size_t number) {
    return {Ipv4Address{0x0a4d0101 + static_cast<std::uint32_t>(number)}, 24};
  }
  std::uint64_t refused() const {
    std::uint64_t sum = 0;
    for (const auto& engine : engines)
      sum += engine->sessions().acceptor().counters().refused_queue;
    return sum;
  }

  std::uint64_t failed() const {
    std::uint64_t sum = 0;
    for (const auto& engine : engines) sum += engine->stack().counters().connections_failed;
    return sum;
  }

  std::shared_ptr<comms::SharedPlaces> places;
  std::vector<std::unique_ptr<ustack::Engine>> engines;
  std::unique_ptr<SharedNic<ustack::Engine>> nic;
};

class SharedEngines : public testing::TestWithParam<bool> {
 protected:
  void make(std::uint64_t seed, const link::Impairment& cable, std::uint8_t count = 5) {
    TearDown();
    hosts.push_back(std::make_unique<Host>(0, 3, GetParam(), seed));
    hosts.push_back(std::make_unique<Host>(1, 4, GetParam(), seed));
    world = std::make_unique<World<SharedNic<ustack::Engine>>>(
        *hosts[0]->nic, *hosts[1]->nic,
        WorldOptions{.forward = cable, .backward = cable, .seed = seed});
    for (std::uint8_t i = 0; i < count; ++i) {
      Connection& one = *connections.emplace_back(std::make_unique<Connection>(i));
      for (const auto& engine : hosts[1]->engines)
        EXPECT_TRUE(engine->sessions().acceptor().add_listener(one.cookie, one));
      one.sender = &hosts[0]->engines[i % 3U]->sessions().connect({Host::address(1).address, 7471U},
                                                                  one.cookie, one);
    }
    world->set_actor(0, [this](TimePoint now) {
      for (const auto& one : connections) one->post(now);
      return kNever;
    });
    world->set_actor(1, [](TimePoint) { return kNever; });
    world->add_invariant([this]() -> std::string {
      for (const auto& one : connections)
        if (!one->problem.empty()) return one->problem;
      return {};
    });
  }
  [[nodiscard]] bool run() {
    return world->run_until([this] {
      for (const auto& one : connections)
        if (!one->is_done()) return false;
      return true;
    });
  }
  void expect_all_right() {
    for (const auto& one : connections) EXPECT_EQ(one->in, one->out);
  }
  // Received sessions end before their engines, and those before the memory lent to them.
  void TearDown() override {
    for (const auto& one : connections) one->receiver.reset();
    world.reset();
    hosts.clear();
    connections.clear();
  }

  std::vector<std::unique_ptr<Host>> hosts;
  std::vector<std::unique_ptr<Connection>> connections;
  std::unique_ptr<World<SharedNic<ustack::Engine>>> world;
};
INSTANTIATE_TEST_SUITE_P(Nics, SharedEngines, testing::Bool(),
                         [](const auto& row) { return row.param ? "told" : "untold"; });

TEST_P(SharedEngines, EveryFlowFindsItsSession) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    make(seed, {.loss = seed == 1 ? 0.0 : 0.01,
                .delay = 15us,
                .jitter = 5us,
                .rate_bits_per_second = kRate});
    ASSERT_TRUE(run()) << world->why() << " seed " << seed;
    expect_all_right();
    EXPECT_GT(hosts[1]->refused(), 0U) << "further flows came to other queues";
  }
}

// Sessions are balanced, independently of the queues they arrive on.
TEST_P(SharedEngines, SessionsAreBalancedOverTheQueues) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    make(seed, {.delay = 15us, .rate_bits_per_second = kRate}, 16);
    ASSERT_TRUE(run()) << world->why() << " seed " << seed;
    expect_all_right();
    for (std::uint8_t queue = 0; queue < 4; ++queue) {
      hosts[1]->places->note_ended(queue);
      EXPECT_FALSE(hosts[1]->places->better_place(queue, 1)) << "its last one exceeded its share";
      hosts[1]->places->note_begun(queue, 1);
    }
  }
}

// A cable that is cut until TCP gives up: all flows die and are redialled to their queue.
TEST_P(SharedEngines, RedialledFlowsReachTheirQueue) {
  for (std::uint64_t seed = 1; seed <= 4; ++seed) {
    make(seed, {.delay = 15us, .rate_bits_per_second = kRate});
    ASSERT_TRUE(world->run_until([&] { return connections[0]->received > 1; })) << world->why();
    for (const std::size_t way : {0U, 1U}) world->wire(way).cut();
    ASSERT_TRUE(world->run_for(4s)) << world->why();
    EXPECT_GT(hosts[0]->failed(), 0U);
    for (const std::size_t way : {0U, 1U}) world->wire(way).mend();
    ASSERT_TRUE(run()) << world->why() << " seed " << seed;
    expect_all_right();
  }
}

}  // namespace
}  // namespace ztcp::sim
