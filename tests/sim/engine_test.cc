// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Two whole engines over bad cables: NCCL messages over sessions over TCP. Every message arrives
// once and whole in the buffer posted for it, whatever happens to frames and flows, and a receiver
// never takes more unposted bytes than it allowed.
#include "transport/ustack/engine/engine.h"

#include <chrono>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/sim/world.h"
#include "tests/support/virtual_workers.h"
#include "transport/msg/reason.h"
#include "transport/wire/frame_parser.h"

namespace ztcp::sim {
namespace {

using namespace std::chrono_literals;

constexpr msg::Cookie kCookie{std::byte{0x5e}, std::byte{0x55}};

// One message: what is sent, and the buffer it must fill, which may be larger.
struct Message {
  Bytes sent;
  Bytes buffer;
  bool is_done = false;  // Received.
  msg::SendMessage send;
  struct Receive final : msg::RecvMessage {
    std::size_t number = 0;
  } receive;
};

std::vector<Message> messages(std::size_t count, std::uint64_t seed) {
  link::Dice dice(seed);
  std::vector<Message> all(count);
  for (Message& m : all) {
    // Small, middle and large alike; 0 is legal.
    const std::size_t size = dice.below((std::uint64_t{1} << dice.below(21)) + 1);
    m.sent = pattern(size, dice.draw());
    m.buffer = Bytes(size + dice.below(3) * 1000, std::byte{0xee});
  }
  return all;
}

class SendUser final : public msg::SendOwner {
 public:
  explicit SendUser(std::vector<Message>& all) : messages_(all) {}
  void post(TimePoint now) {
    while (ready_ && !failed && session != nullptr && posted_ < messages_.size() &&
           posted_ < std::min(done + 8, pause_at)) {
      Message& m = messages_[posted_++];
      m.send.start(m.sent, 0, kUnmapped);
      session->post(now, m.send);
    }
  }
  void on_ready(TimePoint) override { ready_ = true; }
  void on_done(msg::SendMessage&) override {
    if (++done > posted_) problem = "a message was done that was never posted";
  }
  void on_session_failed(Error error) override {
    failed = true;
    problem = std::string("the sending session failed: ") + describe(error.code);
  }
  void on_session_closed() override { closed = true; }

  msg::SendSession* session = nullptr;
  std::size_t pause_at = SIZE_MAX;  // Messages posted until this is raised.
  std::size_t done = 0;
  bool failed = false;
  bool closed = false;
  std::string problem;

 private:
  std::vector<Message>& messages_;
  std::size_t posted_ = 0;
  bool ready_ = false;
};

class ReceiveUser final : public msg::RecvOwner, public msg::ListenerEvents {
 public:
  ReceiveUser(std::vector<Message>& all, Duration pause) : messages_(all), pause_(pause) {}

  // Posts ahead; with a pause, one at a time and late, so that messages wait for their buffers.
  TimePoint post(TimePoint now) {
    if (session == nullptr || failed) return kNever;
    if (!owned_) session->set_owner(*this);
    owned_ = true;
    while (posted_ < std::min(messages_.size(), done + 32)) {
      if (pause_ > Duration::zero()) {
        if (now < next_post_) return next_post_;
        next_post_ = now + pause_;
      }
      Message& m = messages_[posted_];
      m.receive.number = posted_++;
      m.receive.start(m.buffer, 0);
      session->post(now, m.receive);
    }
    return kNever;
  }
  void on_session(TimePoint, std::unique_ptr<msg::RecvSession> incoming) override {
    if (session != nullptr) problem = "a second session";
    session = std::move(incoming);
  }
  void on_done(msg::RecvMessage& message) override {
    const std::size_t number = static_cast<Message::Receive&>(message).number;
    const std::size_t size_bytes = message.size_bytes();
    // Matched in order, but a small message may be complete before a large one in front of it.
    Message& m = messages_[number];
    if (std::exchange(m.is_done, true)) problem = "a message was done twice";
    ++done;
    if (size_bytes != m.sent.size())
      problem = "message " + std::to_string(number) + " of " + std::to_string(m.sent.size()) +
                " bytes came as one of " + std::to_string(size_bytes);
    const auto wrong = std::mismatch(m.sent.begin(), m.sent.end(), m.buffer.begin()).first;
    if (wrong != m.sent.end()) {
      const auto offset = wrong - m.sent.begin();
      problem =
          "wrong bytes in message " + std::to_string(number) + " of " +
          std::to_string(m.sent.size()) + " bytes, from offset " + std::to_string(offset) +
          (m.buffer[static_cast<std::size_t>(offset)] == std::byte{0xee} ? ", never written" : "");
    }
    for (std::size_t i = m.sent.size(); i < m.buffer.size(); ++i)
      if (m.buffer[i] != std::byte{0xee}) problem = "bytes behind the message were touched";
    // NCCL uses the buffer again: whatever is written from now on is an error.
    std::fill(m.buffer.begin(), m.buffer.end(), std::byte{0xdd});
  }
  bool are_finished_buffers_untouched() const {
    for (const Message& m : messages_)
      for (const std::byte b : m.buffer)
        if (m.is_done && b != std::byte{0xdd}) return false;
    return true;
  }
  void on_session_failed(Error error) override {
    failed = true;
    problem = std::string("the receiving session failed: ") + describe(error.code);
  }
  void on_session_closed() override { closed = true; }

  std::unique_ptr<msg::RecvSession> session;
  std::size_t done = 0;
  bool failed = false;
  bool closed = false;
  std::string problem;

 private:
  std::vector<Message>& messages_;
  Duration pause_;
  TimePoint next_post_{};
  std::size_t posted_ = 0;
  bool owned_ = false;
};

struct Case {
  const char* name;
  link::Impairment cable;
  std::uint32_t flows = 4;
  Duration receive_pause{};
  Duration user_timeout = 3s;
  std::size_t workers = 0;  // Of each end.
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class EngineWorld {
 public:
  EngineWorld(const Case& c, std::uint64_t seed, std::size_t count)
      : all(messages(count, seed)),
        client_workers(c.workers, seed),
        server_workers(c.workers, seed + 100),
        client(config(c, 0), &client_workers),
        server(config(c, 1), &server_workers),
        sender(all),
        receiver(all, c.receive_pause),
        world(client, server, WorldOptions{.forward = c.cable, .backward = c.cable, .seed = seed}) {
    const std::uint64_t allowance = config(c, 1).session.eager_allowance_bytes;
    world.set_actor(0, [this](TimePoint now) {
      sender.post(now);
      return kNever;
    });
    if (c.workers != 0) server_workers.serve(*server.copies());
    world.set_actor(1, [this](TimePoint now) {
      const TimePoint next = receiver.post(now);
      return server.copies() == nullptr ? next : std::min(next, server_workers.turn(now));
    });
    world.add_invariant([this, allowance]() -> std::string {
      if (!sender.problem.empty()) return sender.problem;
      if (!receiver.problem.empty()) return receiver.problem;
      if (receiver.session != nullptr && receiver.session->unposted_bytes() > allowance)
        return "more unposted bytes than the allowance";
      if (client.unfinished() > 0 && client.next_deadline() == kNever)
        return "the client has something unacknowledged and no deadline";
      if (server.unfinished() > 0 && server.next_deadline() == kNever)
        return "the server has something unacknowledged and no deadline";
      return {};
    });
  }

  [[nodiscard]] bool connect() {
    if (!server.listen(kCookie, receiver)) return false;
    sender.session =
        &client.connect({Ipv4Address{0x0a4d0102}, config({}, 1).listen_port}, kCookie, sender);
    return true;
  }
  bool is_all_done() const { return sender.done == all.size() && receiver.done == all.size(); }
  [[nodiscard]] bool close() {
    sender.session->close();
    if (!world.run_until([&] { return sender.closed; })) return false;
    receiver.session->close();
    if (!world.run_until([&] { return receiver.closed; })) return false;
    client.destroy(*sender.session);
    receiver.session.reset();
    return world.run_until_idle() && world.held_frames() == 0 && client.unfinished() == 0 &&
           server.unfinished() == 0;
  }

  static ustack::EngineConfig config(const Case& c, std::size_t host) {
    ustack::EngineConfig config;
    config.stack.mac = MacAddress{{2, 0, 0, 0, 0, static_cast<std::uint8_t>(host + 1)}};
    config.stack.address = {Ipv4Address{0x0a4d0101 + static_cast<std::uint32_t>(host)}, 24};
    config.stack.mtu_bytes = 9000;
    config.stack.max_connections = 32;
    config.stack.tcp.user_timeout = c.user_timeout;
    config.session.flows = c.flows;
    config.session.max_sessions = 4;
    config.secret = {host + 1, host + 2};
    config.copies = {.workers = c.workers,
                     .least_message_bytes = 5000,
                     .least_piece_bytes = 1,
                     .stretch_bytes = 2048};
    return config;
  }

  std::vector<Message> all;
  testing_support::VirtualWorkers client_workers;
  testing_support::VirtualWorkers server_workers;
  ustack::Engine client;
  ustack::Engine server;
  SendUser sender;
  ReceiveUser receiver;  // Its session dies before the engines.
  World<ustack::Engine> world;
};

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

// NCCL closes both ends of a connection in the same moment: their byes cross, and behind each close
// the other's is refused. A process that ends waits for none of it.
TEST(Sessions, BothClosingAtOnceLeaveNothingToWaitFor) {
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
    EXPECT_EQ(pair.client.tcp_counters().rto_fired + pair.server.tcp_counters().rto_fired, 0U);
  }
}

// One flow's packets vanish for good, as behind a dead link of an ECMP group: its TCP gives up, the
// session dials it again from another port, and nothing is lost or doubled.
TEST(Sessions, AFlowThatDiesIsRemade) {
  for (std::uint64_t seed = 1; seed <= 12; ++seed) {
    EngineWorld pair(Case{"", {.delay = 10us}, 4, {}, 3s, seed <= 6 ? 0U : 3U}, seed, 60);
    ASSERT_TRUE(pair.connect());
    ASSERT_TRUE(pair.world.run_until([&] { return pair.receiver.done >= seed % 7 * 5; }))
        << pair.world.why();
    // The flow whose data is seen next is cut in both directions.
    auto doomed = std::make_shared<std::uint16_t>(0);
    const auto is_doomed = [doomed](const Bytes& frame, bool forward) {
      RxFrame view;
      view.head = frame;
      const auto parsed = wire::parse_frame(view);
      if (parsed.kind != wire::FrameKind::kTcp) return false;
      const std::uint16_t port = forward ? parsed.tcp.source_port : parsed.tcp.destination_port;
      if (*doomed == 0 && forward && parsed.payload_bytes > 0) *doomed = port;
      return port == *doomed;
    };
    pair.world.wire(0).drop_if([=](const Bytes& frame) { return is_doomed(frame, true); });
    pair.world.wire(1).drop_if([=](const Bytes& frame) { return is_doomed(frame, false); });
    ASSERT_TRUE(pair.world.run_until([&] { return pair.is_all_done(); }, 120s))
        << pair.world.why() << "\n sent " << pair.sender.done << " received " << pair.receiver.done;
    EXPECT_NE(*doomed, 0);
    EXPECT_TRUE(pair.receiver.are_finished_buffers_untouched());
  }
}

// Nothing passes for a while, one way or both, and then everything does again. TCP outlives the
// short ones; in the others flows die, here and there at different times, and are dialled again.
struct Outage {
  const char* name;
  bool forth;
  bool back;
  bool is_idle;  // Nothing is under way when it begins.
};
class Outages : public testing::TestWithParam<Outage> {};

TEST_P(Outages, AreSurvived) {
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

// The peer's host is gone: both sessions end with an error, in bounded time, and nothing is held.
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

// How a suspicion is checked: a NIC whose process lives answers a probe within a round trip.
TEST(Sessions, AProbeIsAnsweredByTheLiving) {
  EngineWorld pair(Case{"", {.delay = 10us}}, 1, 20);
  ASSERT_TRUE(pair.connect());
  ASSERT_TRUE(pair.world.run_until([&] { return pair.is_all_done(); })) << pair.world.why();
  ASSERT_TRUE(pair.world.run_for(1s)) << pair.world.why();
  const Ipv4Address client = EngineWorld::config({}, 0).stack.address.address;
  const Ipv4Address server = EngineWorld::config({}, 1).stack.address.address;
  for (const bool from_client : {true, false}) {
    ustack::Engine& asking = from_client ? pair.client : pair.server;
    const Ipv4Address asked = from_client ? server : client;
    const TimePoint begun = pair.world.now();
    ASSERT_LT(asking.heard_from(asked), begun);
    asking.probe(asked);
    ASSERT_TRUE(pair.world.run_for(1ms)) << pair.world.why();
    EXPECT_GT(asking.heard_from(asked), begun);
    EXPECT_EQ(asking.heard_from(Ipv4Address{1}), TimePoint::min());
  }
  pair.world.wire(1).cut();
  const TimePoint cut = pair.world.now();
  pair.client.probe(server);
  ASSERT_TRUE(pair.world.run_for(100ms)) << pair.world.why();
  EXPECT_LE(pair.client.heard_from(server), cut);
}

// A process that ends with messages under way says so, and is heard although any one of the frames
// that say it gets lost: long before silence would tell.
TEST(Sessions, TheEndOfAProcessIsHeardThoughAFrameGetsLost) {
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

}  // namespace
}  // namespace ztcp::sim
