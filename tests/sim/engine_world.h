// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Two whole engines, their users and the wire between them.
#pragma once

#include <chrono>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/sim/world.h"
#include "tests/support/virtual_workers.h"
#include "transport/ustack/engine/engine.h"

namespace ztcp::sim {

using namespace std::chrono_literals;

inline constexpr msg::Cookie kCookie{std::byte{0x5e}, std::byte{0x55}};

// One message: the bytes to send, and the buffer for them, which may be larger.
struct Message {
  Bytes sent;
  Bytes buffer;
  bool is_done = false;  // Received.
  msg::SendMessage send;
  struct Receive final : msg::RecvMessage {
    std::size_t number = 0;
  } receive;
};

inline std::vector<Message> messages(std::size_t count, std::uint64_t seed) {
  link::Dice dice(seed);
  std::vector<Message> all(count);
  for (Message& m : all) {
    // Small, middle and large ones are equally likely; 0 is legal.
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
    if (dscp) session->set_dscp(*dscp);
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
    // NCCL uses the buffer again: any write from now on is an error.
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
  std::optional<std::uint8_t> dscp;  // The session's.
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
  std::size_t workers = 0;  // At each end.
};
inline void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class EngineWorld {
 public:
  EngineWorld(const Case& c, std::uint64_t seed, std::size_t count)
      : all(messages(count, seed)),
        client_workers(c.workers, seed),
        server_workers(c.workers, seed + 100),
        client(with_events(config(c, 0), flow_events), &client_workers),
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
      if (client.next_deadline() == kNever && client.unfinished() > 0)
        return "the client has something unacknowledged and no deadline";
      if (server.next_deadline() == kNever && server.unfinished() > 0)
        return "the server has something unacknowledged and no deadline";
      return {};
    });
  }

  [[nodiscard]] bool connect(std::optional<std::uint8_t> dscp = std::nullopt) {
    if (!server.sessions().acceptor().add_listener(kCookie, receiver)) return false;
    sender.session = &client.sessions().connect(
        {Ipv4Address{0x0a4d0102}, config({}, 1).listen_port}, kCookie, sender, {.dscp = dscp});
    return true;
  }
  bool is_all_done() const { return sender.done == all.size() && receiver.done == all.size(); }
  [[nodiscard]] bool close() {
    sender.session->close();
    if (!world.run_until([&] { return sender.closed; })) return false;
    receiver.session->close();
    if (!world.run_until([&] { return receiver.closed; })) return false;
    client.sessions().destroy(*sender.session);
    receiver.session.reset();
    return world.run_until_idle() && world.held_frames() == 0 && client.unfinished() == 0 &&
           server.unfinished() == 0;
  }

  static ustack::EngineConfig with_events(ustack::EngineConfig config, msg::PathEvents& events) {
    config.path_events = &events;
    return config;
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
  // The client's.
  struct FlowEvents final : msg::PathEvents {
    void on_redialled(TimePoint, Endpoint, const msg::Redial&) override { ++redialled; }
    int redialled = 0;
  } flow_events;
  testing_support::VirtualWorkers client_workers;
  testing_support::VirtualWorkers server_workers;
  ustack::Engine client;
  ustack::Engine server;
  SendUser sender;
  ReceiveUser receiver;  // Its session dies before the engines.
  World<ustack::Engine> world;
};

// Four flows over a fast line, with the product's timeouts.
inline Case four_flows() {
  return {"",
          {.delay = 10us, .rate_bits_per_second = 100'000'000'000, .queue_limit_bytes = 8U << 20},
          4,
          {},
          8s};
}

// Until messages use all of them.
inline bool are_four_up(const EngineWorld& pair) {
  return pair.client.stack().counters().connections_opened >= 4 && pair.receiver.done >= 50;
}

// The longest time without a finished message, until all are finished; nothing: they never are.
inline std::optional<Duration> longest_standstill(EngineWorld& pair) {
  std::size_t done = pair.receiver.done;
  TimePoint since = pair.world.now();
  Duration longest{};
  const bool ended = pair.world.run_until(
      [&] {
        longest = std::max(longest, pair.world.now() - since);
        if (pair.receiver.done != done) since = pair.world.now();
        done = pair.receiver.done;
        return pair.is_all_done();
      },
      120s);
  return ended ? std::optional(longest) : std::nullopt;
}

}  // namespace ztcp::sim
