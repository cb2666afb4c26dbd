// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A receiving side and senders written by hand, record by record: shared by the tests of the
// acceptor and of sessions.
#pragma once

#include <deque>
#include <memory>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/msg/recording_stream.h"
#include "transport/msg/acceptor.h"
#include "transport/msg/handshake.h"

namespace ztcp::msg {

inline constexpr Cookie kCookie = {std::byte{1}, std::byte{2}};
inline constexpr Cookie kOtherCookie = {std::byte{1}, std::byte{3}};
inline constexpr ClusterKey kKey = {std::byte{0x6b}};

class AcceptorTest : public testing::Test, public ListenerEvents, public RecvOwner {
 protected:
  // A hand-made sender's stream.
  struct Peer {
    RecordingStream stream;
    StreamEvents* events = nullptr;
    template <class Record>
    void say(const Record& record) {
      RecordBuffer out;
      hear(std::span(out).first(encode(record, out)));
    }
    void hear(std::span<const std::byte> bytes) {
      if (!stream.is_left()) events->on_bytes(TimePoint{}, bytes);
    }
    void hear(std::string_view text) { hear(std::as_bytes(std::span(text))); }
    void preamble(std::uint32_t version = kWireVersion) {
      std::array<std::byte, kPreambleBytes> out;
      hear(std::span(out).first(encode_preamble(version, out)));
    }
    void chunk(const Chunk& chunk, std::byte fill = std::byte{0x11}) {
      say(chunk);
      if (chunk.size_bytes != 0) hear(std::vector<std::byte>(chunk.size_bytes, fill));
    }
    std::optional<Refusal> refusal() {
      for (const auto& record : stream.records())
        if (record.header.type == RecordType::kRefusal) return decode_refusal(record.body);
      return std::nullopt;
    }
    Reason reason() {
      const auto refused = refusal();
      return refused ? refused->reason : Reason::kNone;
    }
  };

  void SetUp() override { make(); }
  void make(const ClusterKey& key = {}) {
    sessions.clear();
    acceptor = std::make_unique<Acceptor>(settings, key, 8, std::array<std::uint64_t, 2>{1, 2});
    ASSERT_TRUE(acceptor->add_listener(kCookie, *this));
  }
  void TearDown() override { sessions.clear(); }

  Peer& connect(bool has_spare = true, std::optional<std::uint32_t> rx_queue = std::nullopt) {
    Peer& peer = peers.emplace_back();
    peer.events = acceptor->on_accept(now, peer.stream, Endpoint{Ipv4Address{0x0a000002}, 4000},
                                      has_spare, rx_queue);
    return peer;
  }
  // A posted receive with a number as its name.
  struct Receive final : RecvMessage {
    std::uint32_t name = 0;
  };
  void post(std::span<std::byte> buffer, std::uint32_t name, std::size_t session = 0,
            std::uint32_t tag = 0, bool is_polled = true) {
    Receive& receive = receives.emplace_back();
    receive.name = name;
    receive.start(buffer, tag, is_polled);
    sessions.at(session)->post(now, receive);
  }
  static Hello hello(std::uint64_t session = 5, std::uint32_t epoch = 1, std::uint8_t flow = 0) {
    Hello h;
    h.is_new = flow == 0 && epoch == 1;
    h.cookie = kCookie;
    h.session = session;
    h.epoch = epoch;
    h.flow = flow;
    h.flows_wanted = 4;
    h.nonce = sender_nonce(session, flow, epoch);
    return h;
  }
  Peer& greet(const Hello& h = hello(), bool has_spare = true) {
    Peer& peer = connect(has_spare);
    peer.preamble();
    peer.say(h);
    return peer;
  }
  // The accept sent to `peer`; all unread records after it go to `rest`.
  static std::optional<Accept> accept_of(Peer& peer,
                                         std::vector<RecordingStream::Record>* rest = nullptr) {
    auto records = peer.stream.records();
    if (records.empty() || records.front().header.type != RecordType::kAccept) return std::nullopt;
    const auto accept = decode_accept(records.front().header, records.front().body);
    if (rest != nullptr) rest->assign(records.begin() + 1, records.end());
    return accept;
  }
  static std::optional<Credit> credit_of(Peer& peer) {
    std::optional<Credit> credit;
    for (const auto& record : peer.stream.records())
      if (record.header.type == RecordType::kCredit) credit = decode_credit(record.body);
    return credit;
  }

  static std::vector<Credit> credits_of(Peer& peer) {
    std::vector<Credit> credits;
    for (const auto& record : peer.stream.records())
      if (record.header.type == RecordType::kCredit) credits.push_back(*decode_credit(record.body));
    return credits;
  }

  void on_session(TimePoint, std::unique_ptr<RecvSession> session) override {
    if (refuse_sessions) return;
    sessions.push_back(std::move(session));
    if (set_owner) sessions.back()->set_owner(*this);
  }
  void on_done(RecvMessage& message) override {
    done.emplace_back(static_cast<Receive&>(message).name, message.size_bytes());
  }
  void on_session_failed(Error e) override { failures.push_back(e); }
  void on_session_closed() override { ++closed; }

  using Done = std::vector<std::pair<std::uint32_t, std::size_t>>;
  SessionSettings settings;
  TimePoint now{};
  bool set_owner = true;
  bool refuse_sessions = false;
  std::deque<Peer> peers;
  std::deque<Receive> receives;
  std::unique_ptr<Acceptor> acceptor;
  std::vector<std::unique_ptr<RecvSession>> sessions;
  Done done;
  std::vector<Error> failures;
  int closed = 0;
};

}  // namespace ztcp::msg
