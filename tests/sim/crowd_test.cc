// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One engine and more peers than it has places for: strangers that want nothing, and peers that
// want more flows than they need. A peer that asks for a session still gets it.
#include <chrono>
#include <deque>
#include <memory>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "tests/sim/world.h"
#include "transport/msg/reason.h"
#include "transport/msg/record.h"
#include "transport/ustack/engine/engine.h"

namespace ztcp::sim {
namespace {

using namespace std::chrono_literals;

constexpr msg::Cookie kCrowdCookie{std::byte{0x5e}, std::byte{0x55}};
constexpr std::size_t kPlaces = 32;

// Host 0 has places for all its connections, host 1 for few.
ustack::EngineConfig config(std::size_t host) {
  ustack::EngineConfig config;
  config.stack.mac = MacAddress{{2, 0, 0, 0, 0, static_cast<std::uint8_t>(host + 1)}};
  config.stack.address = {Ipv4Address{0x0a4d0101 + static_cast<std::uint32_t>(host)}, 24};
  config.session.max_sessions = host == 0 ? 512 : kPlaces;
  config.stack.max_connections = ustack::table_places(config.session.max_sessions);
  config.secret = {host + 1, host + 2};
  return config;
}
const Endpoint kServer{config(1).stack.address.address, config(1).listen_port};
constexpr WorldOptions kCable{.forward = {.delay = 10us}, .backward = {.delay = 10us}};

// An engine or a bare stack, for worlds in which a stranger speaks TCP only.
struct EitherHost {
  void on_frames(TimePoint now, std::span<RxFrame> frames) {
    std::visit([&](auto* n) { n->on_frames(now, frames); }, node);
  }
  void on_timers(TimePoint now) {
    std::visit([&](auto* n) { n->on_timers(now); }, node);
  }
  std::size_t collect(TimePoint now, std::span<TxFrame> out) {
    return std::visit([&](auto* n) { return n->collect(now, out); }, node);
  }
  TimePoint next_deadline() const {
    return std::visit([](auto* n) { return n->next_deadline(); }, node);
  }
  std::size_t take_released(std::span<RxFrame> out) {
    return std::visit([&](auto* n) { return n->take_released(out); }, node);
  }
  std::variant<ustack::Engine*, tcp::Stack*> node;
};

// Sends the given bytes, or nothing.
class Stranger final : public StreamEvents {
 public:
  explicit Stranger(Bytes words = {}) : words_(std::move(words)) {}
  void on_open(TimePoint, Stream& stream) override {
    is_open = true;
    if (!words_.empty() && !stream.write(words_, {})) ADD_FAILURE() << "no room for a hello";
  }
  void on_bytes(TimePoint, std::span<const std::byte>) override {}
  void on_acked(TimePoint, std::uint64_t) override {}
  void on_closed(TimePoint) override {}
  void on_failed(TimePoint, Error) override {}

  bool is_open = false;

 private:
  Bytes words_;
};

class Arrivals final : public msg::ListenerEvents {
 public:
  void on_session(TimePoint, std::unique_ptr<msg::RecvSession> incoming) override {
    sessions.push_back(std::move(incoming));
  }
  std::vector<std::unique_ptr<msg::RecvSession>> sessions;
};

Bytes greeting(const msg::Cookie& cookie) {
  msg::Hello hello;
  hello.is_new = true;
  hello.cookie = cookie;
  hello.session = 7;
  hello.epoch = 1;
  hello.flows_wanted = 1;
  Bytes words(msg::kPreambleBytes + msg::kMaxRecordBytes);
  const std::size_t preamble = msg::encode_preamble(msg::kWireVersion, words);
  words.resize(preamble + msg::encode(hello, std::span(words).subspan(preamble)));
  return words;
}

struct Strange {
  const char* name;
  Bytes words;
};
class Strangers : public testing::TestWithParam<Strange> {};

// More streams than the table has places for open, ask for nothing that exists, and stay: a peer
// still connects in time.
TEST_P(Strangers, StrangersDoNotKeepPeersOut) {
  ustack::Engine server(config(1));
  Arrivals arrivals;
  ASSERT_TRUE(server.sessions().acceptor().add_listener(kCrowdCookie, arrivals));
  tcp::Stack strangers(config(0).stack, {1, 2});
  EitherHost first{&strangers};
  EitherHost second{&server};
  World<EitherHost> world(first, second, kCable);

  std::vector<std::unique_ptr<Stranger>> crowd;
  for (std::size_t i = 0; i < 3 * config(1).stack.max_connections; ++i) {
    crowd.push_back(std::make_unique<Stranger>(GetParam().words));
    ASSERT_TRUE(strangers.connect(world.now(), kServer, *crowd.back()));
    ASSERT_TRUE(world.run_for(1ms)) << world.why();
    EXPECT_TRUE(crowd.back()->is_open) << i;
  }
  Stranger peer(greeting(kCrowdCookie));
  ASSERT_TRUE(strangers.connect(world.now(), kServer, peer));
  EXPECT_TRUE(world.run_until([&] { return !arrivals.sessions.empty(); }, 1ms)) << world.why();
  arrivals.sessions.clear();
}

INSTANTIATE_TEST_SUITE_P(Kinds, Strangers,
                         testing::Values(Strange{"silent", {}},
                                         Strange{"unknown_cookie", greeting({})}),
                         [](const auto& test) { return test.param.name; });

class Senders final : public msg::SendOwner {
 public:
  void on_ready(TimePoint) override { ++ready; }
  void on_done(msg::SendMessage&) override {}
  void on_session_failed(Error e) override {
    ++failed;
    error = e;
  }
  void on_session_closed() override {}

  std::size_t ready = 0;
  std::size_t failed = 0;
  Error error;
};

// The sender has streams for four flows of each session, the receiver has not: it keeps a place for
// each session still to come. The session beyond the limit is told at once why it is refused.
TEST(Peers, FurtherFlowsDoNotKeepSessionsOut) {
  const Bytes large = pattern(1U << 20, 1);
  std::deque<msg::SendMessage> records;
  ustack::Engine client(config(0));
  ustack::Engine server(config(1));
  Senders senders;
  Arrivals arrivals;
  ASSERT_TRUE(server.sessions().acceptor().add_listener(kCrowdCookie, arrivals));
  World<ustack::Engine> world(client, server, kCable);
  std::size_t flows_of_first_half = 0;
  for (std::size_t i = 1; i <= kPlaces; ++i) {
    EXPECT_FALSE(server.sessions().is_full());
    msg::SendSession& session = client.sessions().connect(kServer, kCrowdCookie, senders);
    ASSERT_TRUE(world.run_until([&] { return senders.ready == i; }, 1s)) << i << world.why();
    records.emplace_back().start(large, 0, kUnmapped);
    session.post(world.now(), records.back());
    ASSERT_TRUE(world.run_for(10ms)) << world.why();  // The other flows are opened.
    if (i == 4) flows_of_first_half = server.stack().counters().connections_accepted;
  }
  EXPECT_EQ(arrivals.sessions.size(), kPlaces);
  EXPECT_EQ(senders.failed, 0U);
  EXPECT_EQ(client.stack().counters().connections_opened, kPlaces * 4);
  EXPECT_EQ(flows_of_first_half, 16U) << "all flows are accepted while there is room";
  EXPECT_GT(server.sessions().acceptor().counters().refused_flows, kPlaces);
  EXPECT_EQ(server.sessions().acceptor().counters().refused_full, 0U);

  EXPECT_TRUE(server.sessions().is_full());
  msg::SendSession& refused = client.sessions().connect(kServer, kCrowdCookie, senders);
  ASSERT_TRUE(world.run_until([&] { return senders.failed == 1; }, 100ms)) << world.why();
  EXPECT_EQ(senders.error.code, Errc::kFull);
  EXPECT_EQ(describe(refused.failure_detail()),
            "the peer refused: connection limit of its NIC reached: 32");
  client.sessions().destroy(refused);
  arrivals.sessions.pop_back();
  client.sessions().connect(kServer, kCrowdCookie, senders);
  EXPECT_TRUE(world.run_until([&] { return senders.ready == kPlaces + 1; }, 1s)) << world.why();
  arrivals.sessions.clear();
}

// Sessions that this side has started count, too.
TEST(Peers, BothDirectionsShareTheLimit) {
  ustack::Engine client(config(0));
  ustack::Engine server(config(1));
  Senders senders;
  Arrivals arrivals;
  ASSERT_TRUE(client.sessions().acceptor().add_listener(kCrowdCookie, arrivals));
  ASSERT_TRUE(server.sessions().acceptor().add_listener(kCrowdCookie, arrivals));
  World<ustack::Engine> world(client, server, kCable);
  const Endpoint client_at{config(0).stack.address.address, config(0).listen_port};
  for (std::size_t i = 0; i < kPlaces - 1; ++i)
    server.sessions().connect(client_at, kCrowdCookie, senders);
  ASSERT_TRUE(world.run_until([&] { return senders.ready == kPlaces - 1; }, 1s)) << world.why();
  EXPECT_FALSE(server.sessions().is_full());
  client.sessions().connect(kServer, kCrowdCookie, senders);
  ASSERT_TRUE(world.run_until([&] { return senders.ready == kPlaces; }, 1s)) << world.why();
  EXPECT_TRUE(server.sessions().is_full());
  client.sessions().connect(kServer, kCrowdCookie, senders);
  ASSERT_TRUE(world.run_until([&] { return senders.failed == 1; }, 100ms)) << world.why();
  EXPECT_EQ(senders.error.code, Errc::kFull);
  arrivals.sessions.clear();
}

}  // namespace
}  // namespace ztcp::sim
