// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Distinguishes a dead path from a silent peer for the only flow of a session. It dials the peer
// from another port, whose packets may take another path. Once that stream is open, the flow's TCP
// asks the peer several times. Without any answer the path is at fault, and the flow goes on over
// the new stream. A stopped peer opens no stream, and a congested path carries some of the answers.
#pragma once

#include "transport/msg/session.h"

namespace ztcp::msg {

class SendFlow;
class SendSession;

class PathScout final : public StreamEvents {
 public:
  explicit PathScout(SendSession& session) : session_(session) {}
  ~PathScout() { stop(); }
  PathScout(const PathScout&) = delete;
  PathScout& operator=(const PathScout&) = delete;

  // `flow` is in doubt. Ends with stop(), with an answer, or with move_flow() of the session.
  void compare(TimePoint now, SendFlow& flow);
  void stop();

  void on_timers(TimePoint now);
  TimePoint next_deadline() const { return next_; }

  void on_open(TimePoint now, Stream& stream) override;
  void on_bytes(TimePoint, std::span<const std::byte>) override {}
  void on_acked(TimePoint, std::uint64_t) override {}
  void on_closed(TimePoint) override { drop_stream(); }
  void on_failed(TimePoint, Error) override;

 private:
  void dial(TimePoint now);
  void ask(TimePoint now);
  void drop_stream();
  void wait_until(TimePoint when);

  SendSession& session_;
  SendFlow* flow_ = nullptr;  // Null: nothing is compared.
  Stream* stream_ = nullptr;
  TimePoint dialled_at_{};
  TimePoint opened_at_ = kNever;  // kNever: the stream is being opened.
  Duration wait_{};               // For the stream to open.
  Duration interval_{};           // Between two requests.
  int dials_ = 0;
  int requests_ = 0;
  TimePoint next_ = kNever;
};

}  // namespace ztcp::msg
