// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A host as the product has it, in virtual time: a link, an engine, its clients, and the turn that
// joins them. Its clients post, get their sessions' events and retire as comms do.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/sim/frames.h"
#include "tests/sim/line_link.h"
#include "transport/msg/recv_session.h"
#include "transport/ustack/engine/engine.h"

namespace ztcp::sim {

// Pollers spin: a turn comes more often than a frame.
inline constexpr Duration kTurn = std::chrono::microseconds(5);
inline constexpr msg::Cookie kTurnCookie{std::byte{7}, std::byte{1}};

class TurnHost;

// The common part of both ends of a connection. Slices of `memory` are its messages, in order.
class TurnClient : public comms::Client {
 public:
  static constexpr std::size_t kMessageBytes = 256U << 10;
  static constexpr std::size_t kAhead = 8;

  TurnClient(TurnHost& host, Bytes& memory) : host_(host), memory_(memory) {}
  void on_peer_died(TimePoint, IpAddress, const std::string&) override {}
  void say_goodbye(TimePoint) override {}
  void cut_off() override {}
  void on_link_lost(TimePoint) override;

  virtual void close() = 0;
  bool is_done() const { return done == messages(); }

  std::size_t index = 0;
  std::size_t done = 0;
  std::size_t link_losses_heard = 0;
  bool failed = false;
  bool closed = false;

 protected:
  virtual void abort() = 0;
  std::size_t messages() const { return memory_.size() / kMessageBytes; }
  std::span<std::byte> message(std::size_t n) const {
    return std::span(memory_).subspan(n * kMessageBytes, kMessageBytes);
  }
  void note_done();
  // The session is over: the owner may use the memory again.
  void end();

  TurnHost& host_;
  Bytes& memory_;
  std::size_t posted_ = 0;

 private:
  bool retired_ = false;
};

class TurnSender final : public TurnClient, private msg::SendOwner {
 public:
  TurnSender(TurnHost& host, Bytes& memory, Endpoint to);
  ~TurnSender() override;
  void on_doorbell(TimePoint now) override;
  void close() override { session_->close(); }

 private:
  void abort() override { session_->abort(); }
  void on_ready(TimePoint) override;
  void on_done(msg::SendMessage&) override { note_done(); }
  void on_session_failed(Error) override;
  void on_session_closed() override;

  msg::SendSession* session_;
  std::vector<msg::SendMessage> records_;
  bool ready_ = false;
};

class TurnReceiver final : public TurnClient, private msg::RecvOwner {
 public:
  TurnReceiver(TurnHost& host, Bytes& memory, std::unique_ptr<msg::RecvSession> session);
  void on_doorbell(TimePoint now) override;
  void close() override { session_->close(); }

 private:
  void abort() override { session_->abort(); }
  void on_done(msg::RecvMessage&) override { note_done(); }
  void on_session_failed(Error) override;
  void on_session_closed() override;

  std::unique_ptr<msg::RecvSession> session_;
  std::vector<msg::RecvMessage> records_;
};

class TurnHost final : private ustack::TurnEvents, private msg::ListenerEvents {
 public:
  static constexpr TimePoint kBegin{std::chrono::seconds(1)};

  TurnHost(std::uint8_t number, const LineOptions& line)
      : link(line), engine(config(number, line)), number_(number) {
    static_cast<void>(engine.sessions().acceptor().add_listener(kTurnCookie, *this));
  }

  static ustack::EngineConfig config(std::uint8_t number, const LineOptions& line) {
    ustack::EngineConfig config;
    config.stack.mac = MacAddress{{2, 0, 0, 0, 0, number}};
    config.stack.address = {Ipv4Address{0x0a4d0100U + number}, 24};
    config.stack.mtu_bytes = line.mtu_bytes;
    config.stack.max_connections = 64;
    config.session.max_sessions = 8;
    config.secret = {number, 7};
    return config;
  }

  void turn(TimePoint now) {
    link.advance(now);
    moved = engine.turn(now, context_, [this](auto&& visit) {
      for (const std::size_t index : std::exchange(rung_, {})) visit(index);
    });
  }
  void ring(std::size_t index) { rung_.insert(index); }
  TurnSender& connect(TurnHost& to, Bytes& memory) {
    const ustack::EngineConfig there = config(to.number_, {});
    return attach(std::make_unique<TurnSender>(
        *this, memory, Endpoint{there.stack.address.address, there.listen_port}));
  }
  template <class Kind>
  Kind& attach(std::unique_ptr<Kind> client) {
    Kind& attached = *client;
    attached.index = clients.attach(std::move(client)).value();
    ring(attached.index);
    return attached;
  }
  void abandon_payload() { engine.abandon_payload(link); }

  LineLink link;
  ustack::Engine engine;
  comms::Clients clients{8};
  std::vector<Bytes*> inboxes;  // For the next sessions, in order.
  std::vector<TurnReceiver*> receivers;
  std::function<void()> on_done;  // Called for each message; may be empty.
  bool moved = false;

  // The turn's reports, in order: "link 2", "lost 0" (by client 0), "nobody" (no client is left).
  std::vector<std::string> told;
  std::vector<ustack::Finding> findings;
  std::vector<tcp::PathMtuChange> path_changes;

 private:
  void on_link_state(LinkState state) override {
    told.push_back("link " + std::to_string(static_cast<int>(state)));
  }
  void on_warning(const ustack::Finding& finding) override { findings.push_back(finding); }
  void on_path_mtu(TimePoint, const tcp::PathMtuChange& change) override {
    path_changes.push_back(change);
  }
  void on_duplicate_address(IpAddress own, const MacAddress& other) override {
    told.push_back("duplicate " + to_string(own) + " at " + to_string(other));
  }
  void on_nobody_left(TimePoint) override { told.push_back("nobody"); }
  void on_session(TimePoint, std::unique_ptr<msg::RecvSession> session) override {
    Bytes& inbox = *inboxes.at(receivers.size());
    receivers.push_back(&attach(std::make_unique<TurnReceiver>(*this, inbox, std::move(session))));
  }

  const ustack::TurnContext context_{link, clients, *this};
  const std::uint8_t number_;
  std::set<std::size_t> rung_;
};

// --- Clients -------------------------------------------------------------------------------------

inline void TurnClient::note_done() {
  ++done;
  host_.ring(index);
  if (host_.on_done) host_.on_done();
}
inline void TurnClient::end() {
  host_.abandon_payload();
  std::fill(memory_.begin(), memory_.end(), std::byte{0xdd});
  if (!std::exchange(retired_, true)) host_.clients.retire(index);
}
inline void TurnClient::on_link_lost(TimePoint) {
  ++link_losses_heard;
  host_.told.push_back("lost " + std::to_string(index));
  if (!failed && !closed) abort();
  failed = true;
  end();
}

inline TurnSender::TurnSender(TurnHost& host, Bytes& memory, Endpoint to)
    : TurnClient(host, memory), records_(memory.size() / kMessageBytes) {
  session_ = &host.engine.sessions().connect(to, kTurnCookie, *this);
}
inline TurnSender::~TurnSender() { host_.engine.sessions().destroy(*session_); }
inline void TurnSender::on_ready(TimePoint) {
  ready_ = true;
  host_.ring(index);
}
inline void TurnSender::on_doorbell(TimePoint now) {
  while (ready_ && !failed && !closed && posted_ < std::min(messages(), done + kAhead)) {
    records_[posted_].start(message(posted_), 0, 1);
    session_->post(now, records_[posted_++]);
  }
}
inline void TurnSender::on_session_failed(Error) {
  failed = true;
  end();
}
inline void TurnSender::on_session_closed() {
  closed = true;
  end();
}

inline TurnReceiver::TurnReceiver(TurnHost& host, Bytes& memory,
                                  std::unique_ptr<msg::RecvSession> session)
    : TurnClient(host, memory),
      session_(std::move(session)),
      records_(memory.size() / kMessageBytes) {
  session_->set_owner(*this);
}
inline void TurnReceiver::on_doorbell(TimePoint now) {
  while (!failed && !closed && posted_ < std::min(messages(), done + kAhead)) {
    records_[posted_].start(message(posted_), 0);
    session_->post(now, records_[posted_++]);
  }
}
inline void TurnReceiver::on_session_failed(Error) {
  failed = true;
  end();
}
inline void TurnReceiver::on_session_closed() {
  closed = true;
  end();
}

}  // namespace ztcp::sim
