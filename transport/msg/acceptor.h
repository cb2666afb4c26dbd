// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Turns incoming streams into sessions: reads each stream's handshake, finds the listener by its
// cookie or the running session by its id, and drops strangers (wrong magic, unknown cookie, bad
// HMAC, silence past the handshake timeout). They are counted and harmless: a silent stream makes
// room for a newer one.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "core/address.h"
#include "transport/msg/recv_flow.h"
#include "transport/msg/recv_session.h"
#include "transport/msg/rx_places.h"
#include "transport/msg/session.h"
#include "transport/msg/session_budget.h"
#include "transport/msg/session_places.h"
#include "transport/msg/stranger_counts.h"

namespace ztcp::msg {

class ListenerEvents {
 public:
  // A new session arrived for this listener; its stream joins it after this call. It takes bytes
  // (up to its eager allowance) before an owner is set. A listener that can't keep it ends it,
  // which resets its sender; std::bad_alloc refuses the sender by name.
  virtual void on_session(TimePoint now, std::unique_ptr<RecvSession> session) = 0;

 protected:
  ~ListenerEvents() = default;
};

struct AcceptorCounters {
  StrangerCounts strangers;
  std::uint64_t refused_full = 0;
  std::uint64_t refused_flows = 0;  // Further flows, which their sessions can do without.
  std::uint64_t refused_stale = 0;  // Resumes of a session or epoch that has ended.
  std::uint64_t refused_no_memory = 0;
  std::uint64_t refused_queue = 0;     // Flows with a session that is, or should be, on another
                                       // queue.
  std::uint64_t refused_gone = 0;      // Refused flows that their senders then reset, as intended.
  std::uint64_t refused_rx_queue = 0;  // Flows that should use another receive queue.
};

class Acceptor {
 public:
  // `secret` seeds the nonces of the authenticated handshake; random bits in the product. `copies`
  // is null where there are no workers, else outlives this and its sessions.
  Acceptor(const SessionSettings& settings, const ClusterKey& key, std::size_t max_pending_streams,
           std::array<std::uint64_t, 2> secret, CopyJobs* copies = nullptr);
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // Makes this the `place`th of several acceptors of a NIC. To be called before anything arrives.
  void share(SessionPlaces& places, std::uint8_t place) {
    places_ = &places;
    place_ = place;
  }

  // Counts the sessions in a budget that several acceptors share. To be called before anything
  // arrives.
  void count_in(SessionBudget& budget) { budget_ = &budget; }

  // Spreads flows that carry bulk over the receive queues of a NIC. To be called before anything
  // arrives.
  void spread_over(RxPlaces& places) { rx_places_ = &places; }

  // Lets sessions dial, too.
  void dial_by(StreamSource& source) { source_ = &source; }

  // Listeners are few; cookies are random, so a lookup reveals nothing.
  Status add_listener(const Cookie& cookie, ListenerEvents& events);
  void remove_listener(const Cookie& cookie) { listeners_.erase(cookie); }

  // A stream was accepted. Returns the receiver of its events; nullptr when memory is exhausted, or
  // when too many streams are pending and none of them is silent or refused. `has_spare`: streams
  // are left for flows that their sessions can do without; if false, such a flow is refused.
  // `rx_queue`: the NIC's receive queue of the stream; nothing: unknown, and it is accepted.
  StreamEvents* on_accept(TimePoint now, Stream& stream, Endpoint remote, bool has_spare = true,
                          std::optional<std::uint32_t> rx_queue = std::nullopt);

  // Sessions made here. `count` other sessions share max_sessions with them: a new one that finds
  // no room is refused by name.
  std::size_t sessions() const { return sessions_.size(); }
  void set_other_sessions(std::size_t count) {
    other_sessions_ = count;
    note_room();
  }

  // Ends the turn: every session that received bytes or posts since the last call sends the credit
  // record it owes, one for the whole burst.
  void flush();
  // Drives pending handshakes and the sessions made here.
  void on_timers(TimePoint now);
  TimePoint next_deadline() const { return next_deadline_; }
  const AcceptorCounters& counters() const { return counters_; }

  // --- Called by pending flows ---
  void on_version(TimePoint now, RecvFlow& flow, std::uint32_t version);
  void on_hello(TimePoint now, RecvFlow& flow, const Hello& hello);
  void on_proof(TimePoint now, RecvFlow& flow, const Proof& proof);
  void on_stray(RecvFlow& flow);  // Not our protocol.
  // The stream has ended; the flow is freed later, since it may be on the call stack.
  void on_pending_gone(RecvFlow& flow);

  // --- Called by sessions ---
  CopyJobs* copies() const { return copies_; }
  StreamSource* source() const { return source_; }  // Null: sessions can't dial.
  void owe_credit(RecvSession& session) { owing_.push_back(&session); }
  void wake_at(TimePoint when) { next_deadline_ = std::min(next_deadline_, when); }
  void reap_later(std::unique_ptr<RecvFlow> flow) { to_reap_.push_back(std::move(flow)); }
  void remove_session(RecvSession& session);
  // The owner closed or aborted it: a sender that dials again later is refused with that reason.
  void remember_closed(const RecvSession& session, const Refusal& how);

 private:
  struct Closed {
    std::uint64_t session = 0;
    Cookie cookie{};
    Refusal how;
  };
  // Number of closed sessions remembered. The sender of a forgotten one is told kUnknownSession, so
  // fewer should end within a redial window.
  static constexpr std::size_t kClosedRemembered = 4096;

  // Cookies and session ids are random, or chosen by a stranger who finds nothing: any bits do.
  struct CookieHash {
    std::size_t operator()(const Cookie& cookie) const;
  };

  struct Verdict {
    Refusal refusal{Reason::kNone, 0, 0};
    RecvSession* session = nullptr;
    ListenerEvents* listener = nullptr;
    bool is_refused() const { return refusal.reason != Reason::kNone; }
  };

  // Drops the oldest stream that is silent or refused; false when there is none.
  bool push_out_oldest();
  Verdict judge(const RecvFlow& flow);
  Refusal how_it_ended(const Hello& hello) const;
  void forget_place(std::uint64_t session);
  bool is_full() const { return sessions_.size() + other_sessions_ >= settings_.max_sessions; }
  Refusal refusal_for_room() const;
  void note_room();
  bool carries_bulk(const Hello& hello) const;
  bool take_rx_place(RecvFlow& flow, const RecvSession* session);
  void refuse(TimePoint now, RecvFlow& flow, const Refusal& refusal);
  // After the proof, if one was due.
  void admit(TimePoint now, RecvFlow& flow);
  RecvSession* open_session(TimePoint now, const RecvFlow& flow, ListenerEvents& listener);
  std::unique_ptr<RecvFlow> take_pending(RecvFlow& flow);
  std::uint32_t next_allowance() const;
  void reap();

  const SessionSettings settings_;
  const ClusterKey key_;
  const std::size_t max_pending_;
  const std::array<std::uint64_t, 2> secret_;
  CopyJobs* const copies_;
  StreamSource* source_ = nullptr;
  SessionPlaces* places_ = nullptr;  // Null: this is the only acceptor.
  std::uint8_t place_ = 0;
  SessionBudget* budget_ = nullptr;  // Null: only its own limit applies.
  bool is_known_full_ = false;       // places_ was told that this is full.
  RxPlaces* rx_places_ = nullptr;    // Null: there is one queue, or the queues are unknown.
  std::uint64_t challenges_ = 0;
  std::size_t other_sessions_ = 0;
  std::size_t budget_taken_bytes_ = 0;  // Sum of the sessions' allowances beyond the least.
  bool has_dead_ = false;               // Some flows in pending_ have ended.
  AcceptorCounters counters_;
  TimePoint next_deadline_ = kNever;  // At or before the earliest deadline of all flows and
                                      // sessions.
  std::unordered_map<Cookie, ListenerEvents*, CookieHash> listeners_;
  std::unordered_map<std::uint64_t, RecvSession*> sessions_;
  std::vector<Closed> closed_;    // A ring once it is full.
  std::size_t closed_count_ = 0;  // In total.
  std::vector<RecvSession*> owing_;
  std::vector<RecvSession*> flushing_;              // The list that flush() works on.
  std::vector<std::unique_ptr<RecvFlow>> pending_;  // In order of arrival.
  std::vector<std::unique_ptr<RecvFlow>> to_reap_;
};

}  // namespace ztcp::msg
