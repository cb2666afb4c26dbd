// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The sending side against a receiver written by hand, record by record: shared by the tests of
// SendSession.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/msg/recording_stream.h"
#include "transport/msg/send_session.h"

namespace ztcp::msg {

class SendSessionTest : public testing::Test, public Dialer, public SendOwner, public PathEvents {
 protected:
  static constexpr Cookie kCookie = {std::byte{1}};
  static constexpr std::uint64_t kId = 77;

  // A message with a number as its name.
  struct Send final : SendMessage {
    std::uint32_t name = 0;
  };
  struct Dialled {
    RecordingStream stream;
    StreamEvents* events = nullptr;
    std::uint64_t acked = 0;
  };

  void SetUp() override { make(); }
  void make() {
    session = std::make_unique<SendSession>(settings, ClusterKey{}, kCookie, kId, *this, *this);
  }
  Result<Stream*> dial(TimePoint, StreamEvents& events) override {
    if (!dials_succeed) return fail(Errc::kNoRoute, "dial");
    dialled.emplace_back().events = &events;
    dialled.back().stream.port = static_cast<std::uint16_t>(40000 + dialled.size());
    return &dialled.back().stream;
  }
  Result<Stream*> dial_small(TimePoint at, StreamEvents& events,
                             std::uint32_t segment_bytes) override {
    segment_limits.push_back(segment_bytes);
    return dial(at, events);
  }
  PathEvents* path_events() override { return this; }
  bool is_peer_answering_since(TimePoint, TimePoint) override { return is_answered_elsewhere; }
  void on_trouble(TimePoint, Endpoint, PeerTrouble trouble, Duration) override {
    troubles.push_back(trouble);
  }
  void on_trouble_over(TimePoint, Endpoint, PeerTrouble, Duration lasted) override {
    troubles_over.push_back(lasted);
  }
  void on_small_segments(TimePoint, Endpoint, std::uint32_t) override { ++small_flows; }
  void on_redialled(TimePoint, Endpoint, const Redial& redial) override {
    redialled.push_back(redial);
  }
  void on_ready(TimePoint) override { ++ready; }
  void on_done(SendMessage& message) override { done.push_back(static_cast<Send&>(message).name); }
  void on_session_failed(Error e) override { failures.push_back(e); }
  void on_session_closed() override { ++closed; }

  void preamble(Dialled& d, std::uint32_t version = kWireVersion) {
    std::array<std::byte, kPreambleBytes> out;
    encode_preamble(version, out);
    d.events->on_bytes(now, out);
  }
  template <class Record>
  void say(Dialled& d, const Record& record) {
    RecordBuffer out;
    const std::size_t size = encode(record, out);
    if (!d.stream.is_left()) d.events->on_bytes(now, std::span(out).first(size));
  }
  // Performs the handshake of the stream dialled as number `index`.
  Dialled& open(std::size_t index) {
    session->on_timers(now);
    Dialled& d = dialled.at(index);
    d.events->on_open(now, d.stream);
    preamble(d);
    return d;
  }
  Dialled& accept(std::size_t index, const Credit& credit = {}, const Accept& limits = kLimits) {
    Dialled& d = open(index);
    static_cast<void>(d.stream.records());
    say(d, limits);
    if (credit != Credit{}) say(d, credit);
    say(d, Ready{credit.released});
    return d;
  }
  // Everything written so far.
  void ack(Dialled& d, std::uint64_t bytes) { d.events->on_acked(now, d.acked += bytes); }
  void post(std::size_t size, std::uint32_t tag = 0) {
    Send& send = sends.emplace_back();
    send.name = next_name++;
    send.start(std::span(memory).first(size), tag, 0);
    session->post(now, send);
  }
  static std::vector<Chunk> chunks(Dialled& d) {
    std::vector<Chunk> out;
    for (const auto& r : d.stream.records())
      if (r.header.type == RecordType::kChunk) out.push_back(*decode_chunk(r.header, r.body));
    return out;
  }

  static constexpr Accept kLimits{true, 8192, 4, 32, kId};
  static constexpr std::uint64_t kHelloBytes = kPreambleBytes + kHeaderBytes + Hello::kBody;
  SessionSettings settings;
  TimePoint now{};
  bool dials_succeed = true;
  bool is_answered_elsewhere = false;  // On another session.
  std::deque<Dialled> dialled;
  std::vector<std::uint32_t> segment_limits;
  std::vector<PeerTrouble> troubles;
  std::vector<Duration> troubles_over;
  std::vector<Redial> redialled;
  int small_flows = 0;  // Number that came up.
  std::vector<std::byte> memory = std::vector<std::byte>(1U << 20);
  std::uint32_t next_name = 0;
  std::deque<Send> sends;
  int ready = 0;
  int closed = 0;
  std::vector<std::uint32_t> done;
  std::vector<Error> failures;
  std::unique_ptr<SendSession> session;
};

}  // namespace ztcp::msg
