// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Turns incoming streams into sessions: reads each stream's handshake, finds the listener by its
// cookie or the running session by its id, and drops strays (wrong magic, unknown cookie, bad
// HMAC, silence past the handshake timeout), counting them and hurting nobody: who has nothing to
// say makes room for who comes after.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <unordered_map>
#include <vector>

#include "transport/core/address.h"
#include "transport/msg/recv_flow.h"
#include "transport/msg/recv_session.h"
#include "transport/msg/rx_places.h"
#include "transport/msg/session.h"
#include "transport/msg/session_budget.h"
#include "transport/msg/session_places.h"

namespace ztcp::msg {

class ListenerEvents {
 public:
  // A new session arrived for this listener; its stream joins it after this call. It takes bytes
  // (up to its eager allowance) before an owner is set. Whoever can't keep it ends it, and its
  // sender is reset; std::bad_alloc refuses the sender by name.
  virtual void on_session(TimePoint now, std::unique_ptr<RecvSession> session) = 0;

 protected:
  ~ListenerEvents() = default;
};

struct AcceptorCounters {
  std::uint64_t strays_bad_magic = 0;
  std::uint64_t strays_unknown_cookie = 0;
  std::uint64_t strays_bad_key = 0;
  std::uint64_t strays_timed_out = 0;
  std::uint64_t strays_pushed_out = 0;  // Silent, or refused, when a newer one needed the place.
  std::uint64_t refused_version = 0;
  std::uint64_t refused_full = 0;
  std::uint64_t refused_flows = 0;  // Further ones, which their sessions do without.
  std::uint64_t refused_stale = 0;  // Resumes of a session or epoch that is no more.
  std::uint64_t refused_no_memory = 0;
  std::uint64_t refused_queue = 0;  // Flows that another queue has, or should have, the session of.
  std::uint64_t refused_gone = 0;   // Refused ones whose senders reset them, as they do.
  std::uint64_t refused_rx_queue = 0;  // Flows that had better come by another receive queue.
};

class Acceptor {
 public:
  // `secret` makes the nonces of the authenticated handshake; random bits in the product. `copies`
  // is null where there are no workers, else outlives it and its sessions.
  Acceptor(const SessionSettings& settings, const ClusterKey& key, std::size_t max_pending_streams,
           std::array<std::uint64_t, 2> secret, CopyJobs* copies = nullptr);
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // One of several acceptors of a NIC: the `place`th. Before anything arrives.
  void share(SessionPlaces& places, std::uint8_t place) {
    places_ = &places;
    place_ = place;
  }

  // Its sessions count in a budget that several acceptors share. Before anything arrives.
  void count_in(SessionBudget& budget) { budget_ = &budget; }

  // Flows that carry bulk are spread over the receive queues of a NIC. Before anything arrives.
  void spread_over(RxPlaces& places) { rx_places_ = &places; }

  // Sessions may dial, too.
  void dial_by(StreamSource& source) { source_ = &source; }

  // Listeners are few; cookies are random, so a lookup reveals nothing.
  Status add_listener(const Cookie& cookie, ListenerEvents& events);
  void remove_listener(const Cookie& cookie) { listeners_.erase(cookie); }

  // A stream was accepted. Returns who hears its events, nullptr when memory has ended, or when too
  // many are pending and none of them is silent or refused. `has_spare`: there are streams left for
  // flows that their sessions can do without; if not, this one is refused should it be such a flow.
  // `rx_queue`: the NIC's receive queue that it came by; nothing: nobody knows, and it is taken.
  StreamEvents* on_accept(TimePoint now, Stream& stream, Endpoint remote, bool has_spare = true,
                          std::optional<std::uint32_t> rx_queue = std::nullopt);

  // Sessions made here. So many others share max_sessions with them: a new one that finds no room
  // is refused by name.
  std::size_t sessions() const { return sessions_.size(); }
  void set_other_sessions(std::size_t count) {
    other_sessions_ = count;
    note_room();
  }

  // Ends the turn: every session that heard bytes or posts since the last call emits the credit
  // record it owes, one for the whole burst.
  void flush();
  // Drives pending handshakes and the sessions made here.
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
  CopyJobs* copies() const { return copies_; }
  StreamSource* source() const { return source_; }  // Null: there is none.
  void owe_credit(RecvSession& session) { owing_.push_back(&session); }
  void wake_at(TimePoint when) { next_deadline_ = std::min(next_deadline_, when); }
  void bury(std::unique_ptr<RecvFlow> flow) { graveyard_.push_back(std::move(flow)); }
  void remove_session(RecvSession& session);
  // Its owner closed or aborted it: a sender that dials again later is refused with that reason.
  void remember_closed(const RecvSession& session, const Refusal& how);

 private:
  struct Closed {
    std::uint64_t session = 0;
    Cookie cookie{};
    Refusal how;
  };
  // The last so many are remembered. A sender whose session was forgotten is told kUnknownSession,
  // so fewer should end within a redial window.
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

  // Ends the oldest stream that is silent or refused; false when none is.
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
  SessionPlaces* places_ = nullptr;  // Null: there is no other.
  std::uint8_t place_ = 0;
  SessionBudget* budget_ = nullptr;  // Null: its own limit is the only one.
  bool is_known_full_ = false;       // To places_.
  RxPlaces* rx_places_ = nullptr;    // Null: there is one queue, or nobody knows.
  std::uint64_t challenges_ = 0;
  std::size_t other_sessions_ = 0;
  std::size_t budget_taken_bytes_ = 0;  // By the sessions' allowances beyond the least.
  bool has_dead_ = false;               // Some of pending_ have ended.
  AcceptorCounters counters_;
  TimePoint next_deadline_ = kNever;  // Not later than the earliest of all flows and sessions.
  std::unordered_map<Cookie, ListenerEvents*, CookieHash> listeners_;
  std::unordered_map<std::uint64_t, RecvSession*> sessions_;
  std::vector<Closed> closed_;    // A ring once it is full.
  std::size_t closed_count_ = 0;  // Ever.
  std::vector<RecvSession*> owing_;
  std::vector<RecvSession*> flushing_;              // What flush() is at.
  std::vector<std::unique_ptr<RecvFlow>> pending_;  // As they came.
  std::vector<std::unique_ptr<RecvFlow>> graveyard_;
};

}  // namespace ztcp::msg
