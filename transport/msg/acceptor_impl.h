// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The acceptor behind acceptor.h: streams that shake hands, and the running sessions by id.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "transport/msg/recv_session_impl.h"

namespace ztcp::msg {

class Acceptor::Impl {
 public:
  Impl(const SessionSettings& settings, const ClusterKey& key, std::size_t max_pending_streams,
       const std::array<std::uint64_t, 2>& secret);
  ~Impl();
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Status add_listener(const Cookie& cookie, ListenerEvents& events);
  void remove_listener(const Cookie& cookie) { listeners_.erase(cookie); }
  StreamEvents* on_accept(TimePoint now, Stream& stream, Endpoint remote, bool has_spare);
  std::size_t sessions() const { return sessions_.size(); }
  void set_other_sessions(std::size_t count) { other_sessions_ = count; }
  void flush();
  void on_timers(TimePoint now);
  TimePoint next_deadline() const { return next_deadline_; }
  const AcceptorCounters& counters() const { return counters_; }

  // --- Pending flows' ---
  void on_version(TimePoint now, RecvFlow& flow, std::uint32_t version);
  void on_hello(TimePoint now, RecvFlow& flow, const Hello& hello);
  void on_proof(TimePoint now, RecvFlow& flow, const Proof& proof);
  void on_stray(RecvFlow& flow);  // Not our protocol.
  // The stream has ended; the flow is freed later, for it may be on the stack.
  void on_pending_gone(RecvFlow& flow);

  // --- Sessions' ---
  void owe_credit(RecvSession::Impl& session) { owing_.push_back(&session); }
  void wake_at(TimePoint when) { next_deadline_ = std::min(next_deadline_, when); }
  void bury(std::unique_ptr<RecvFlow> flow) { graveyard_.push_back(std::move(flow)); }
  void remove_session(RecvSession::Impl& session);
  // Its owner closed it with so many messages received: what a sender is told that comes back
  // because our bye died with its flows.
  void remember_closed(const RecvSession::Impl& session, std::uint64_t received);

 private:
  struct Closed {
    std::uint64_t session = 0;
    Cookie cookie{};
    std::uint64_t received = 0;
  };
  // The last so many are remembered, which outlasts their senders' redials by far.
  static constexpr std::size_t kClosedRemembered = 4096;

  // Cookies and session ids are random, or chosen by a stranger who finds nothing: any bits do.
  struct CookieHash {
    std::size_t operator()(const Cookie& cookie) const;
  };

  struct Verdict {
    Refusal refusal{Reason::kNone, 0, 0};
    RecvSession::Impl* session = nullptr;
    ListenerEvents* listener = nullptr;
    bool is_refused() const { return refusal.reason != Reason::kNone; }
  };

  // Ends the oldest stream that is silent or refused; false when none is.
  bool push_out_oldest();
  Verdict judge(const RecvFlow& flow);
  Refusal how_it_ended(const Hello& hello) const;
  void refuse(TimePoint now, RecvFlow& flow, const Refusal& refusal);
  // After the proof, if one was due.
  void admit(TimePoint now, RecvFlow& flow);
  std::unique_ptr<RecvFlow> take_pending(RecvFlow& flow);
  std::uint32_t take_allowance();
  void reap();

  const SessionSettings settings_;
  const ClusterKey key_;
  const std::size_t max_pending_;
  const std::array<std::uint64_t, 2> secret_;
  std::uint64_t challenges_ = 0;
  std::size_t other_sessions_ = 0;
  std::size_t budget_taken_bytes_ = 0;  // By the sessions' allowances beyond the least.
  bool has_dead_ = false;               // Some of pending_ have ended.
  AcceptorCounters counters_;
  TimePoint next_deadline_ = kNever;  // Not later than the earliest of all flows and sessions.
  std::unordered_map<Cookie, ListenerEvents*, CookieHash> listeners_;
  std::unordered_map<std::uint64_t, RecvSession::Impl*> sessions_;
  std::vector<Closed> closed_;    // A ring once it is full.
  std::size_t closed_count_ = 0;  // Ever.
  std::vector<RecvSession::Impl*> owing_;
  std::vector<RecvSession::Impl*> flushing_;        // What flush() is at.
  std::vector<std::unique_ptr<RecvFlow>> pending_;  // As they came.
  std::vector<std::unique_ptr<RecvFlow>> graveyard_;
};

}  // namespace ztcp::msg
