// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Asks the host of a sender that has lost all its flows whether the sender's process still lives,
// by dialling the port that it listens at (record.h). If the connection is accepted, it asks again
// after a second: a living process may still redial, or hang.
#pragma once

#include <optional>
#include <utility>

#include "transport/msg/nobody_listens.h"
#include "transport/msg/session.h"

namespace ztcp::msg {

class RecvSession;

class SenderProbe final : public StreamEvents {
 public:
  explicit SenderProbe(RecvSession& session) : session_(session) {}
  ~SenderProbe() { stop(); }
  SenderProbe(const SenderProbe&) = delete;
  SenderProbe& operator=(const SenderProbe&) = delete;

  // Asks from `now` on, each time for at most `timeout`, until stop(), or until it has called
  // on_sender_gone() of the session.
  void start(TimePoint now, StreamSource& source, Endpoint listening, const DialSettings& settings,
             Duration timeout);
  void stop();

  void on_timers(TimePoint now);
  TimePoint next_deadline() const { return next_; }

  void on_open(TimePoint now, Stream& stream) override;
  void on_bytes(TimePoint, std::span<const std::byte>) override {}
  void on_acked(TimePoint, std::uint64_t) override {}
  void on_closed(TimePoint) override {}
  void on_failed(TimePoint now, Error error) override;

 private:
  void ask(TimePoint now);
  void on_answer(TimePoint now, bool was_refused);
  void wait_until(TimePoint when);

  RecvSession& session_;
  StreamSource* source_ = nullptr;
  Stream* stream_ = nullptr;  // Being opened.
  Endpoint listening_;
  DialSettings settings_;
  Duration timeout_{};
  TimePoint next_ = kNever;  // Time to ask, or to give up.
  NobodyListens nobody_;
};

}  // namespace ztcp::msg
