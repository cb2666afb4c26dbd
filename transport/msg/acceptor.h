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

#include "transport/core/address.h"
#include "transport/msg/session.h"

namespace ztcp::msg {

class ListenerEvents {
 public:
  // A new session arrived for this listener. It takes bytes (up to its eager allowance) before an
  // owner is set.
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
};

class Acceptor {
 public:
  // `secret` makes the nonces of the authenticated handshake; random bits in the product.
  Acceptor(const SessionSettings& settings, const ClusterKey& key, std::size_t max_pending_streams,
           std::array<std::uint64_t, 2> secret);
  ~Acceptor();
  Acceptor(const Acceptor&) = delete;
  Acceptor& operator=(const Acceptor&) = delete;

  // Listeners are few; cookies are random, so a lookup reveals nothing.
  Status add_listener(const Cookie& cookie, ListenerEvents& events);
  void remove_listener(const Cookie& cookie);

  // A stream was accepted. Returns who hears its events, nullptr when too many are pending and none
  // of them is silent or refused. `has_spare`: there are streams left for flows that their sessions
  // can do without; if not, this one is refused should it be such a flow.
  StreamEvents* on_accept(TimePoint now, Stream& stream, Endpoint remote, bool has_spare = true);

  // Sessions made here. So many others share max_sessions with them: a new one that finds no room
  // is refused by name.
  std::size_t sessions() const;
  void set_other_sessions(std::size_t count);

  // Ends the turn: every session that heard bytes or posts since the last call emits the credit
  // record it owes, one for the whole burst.
  void flush(TimePoint now);
  // Drives pending handshakes and the sessions made here.
  void on_timers(TimePoint now);
  TimePoint next_deadline() const;
  const AcceptorCounters& counters() const;

  class Impl;  // Internal.

 private:
  std::unique_ptr<Impl> impl_;
};

}  // namespace ztcp::msg
