// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Distinguishes dead paths from a silent peer, for flows of a session whose TCP has timed out. If
// the peer answers on no other flow, the scout dials it from another port, whose packets may take
// another path. Once the peer is known to answer, the doubtful flows ask it several times. Those
// that hear nothing, while each request is answered elsewhere, have a dead path and move; the first
// one goes on over the new stream. A stopped peer answers nowhere, a slow one sooner or later
// everywhere, and a congested path carries some of the answers.
//
// Also opens the stream for a flow that leaves a bad path.
#pragma once

#include <bitset>
#include <cstddef>

#include "transport/msg/session.h"

namespace ztcp::msg {

class SendSession;

using FlowSet = std::bitset<kMaxFlows>;

class PathScout final : public StreamEvents {
 public:
  explicit PathScout(SendSession& session) : session_(session) {}
  ~PathScout() { stop(); }
  PathScout(const PathScout&) = delete;
  PathScout& operator=(const PathScout&) = delete;

  // `flows` are in doubt. Both end with stop(), with answers, or with move_flows() of the session.
  void compare_with_new_stream(TimePoint now, FlowSet flows);
  void compare_with_siblings(TimePoint now, FlowSet flows);  // The peer answers on other flows.
  bool is_idle() const { return flows_.none(); }
  // Requires is_idle(). The path of `flow` is bad, not dead. Ends with leave_path() of the session,
  // or with stop() if the new stream does not open soon.
  void find_other_path(TimePoint now, std::size_t flow);
  void stop();

  void on_timers(TimePoint now);
  TimePoint next_deadline() const { return next_; }

  void on_open(TimePoint now, Stream& stream) override;
  void on_bytes(TimePoint, std::span<const std::byte>) override {}
  void on_acked(TimePoint, std::uint64_t) override {}
  void on_closed(TimePoint) override { drop_stream(); }
  void on_failed(TimePoint, Error) override;

 private:
  Duration longest_round_trip() const;
  void dial(TimePoint now);
  void leave_path(TimePoint now);
  void begin(TimePoint now, Duration round_trip);
  void ask(TimePoint now);
  bool was_answered_elsewhere(TimePoint now);
  void drop_stream();
  void wait_until(TimePoint when);

  SendSession& session_;
  FlowSet flows_;             // Empty: nothing is compared.
  bool is_path_bad_ = false;  // find_other_path().
  Stream* stream_ = nullptr;  // Null: compared with siblings, or nothing is dialled.
  TimePoint dialled_at_{};
  TimePoint begun_at_ = kNever;  // When the requests began; kNever: the stream is being opened.
  TimePoint asked_at_{};         // The last request.
  Duration wait_{};              // For the stream to open.
  Duration interval_{};          // Between two requests.
  int dials_ = 0;
  int answers_ = 0;  // Requests that were answered elsewhere.
  TimePoint next_ = kNever;
};

}  // namespace ztcp::msg
