// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A backend carries the byte streams of the comms' sessions. The userspace TCP is one (a NIC's
// lane: its link, stack and sessions), kernel sockets are another. A Poller decides when a turn
// runs, and on which thread. Functions that are not marked "any thread" need that poller's baton.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "config/settings.h"
#include "core/address.h"
#include "core/clock.h"
#include "core/frame.h"
#include "core/link_state.h"
#include "core/result.h"
#include "transport/comms/clients/clients.h"
#include "transport/comms/clients/group_counts.h"
#include "transport/comms/deferred_log.h"
#include "transport/comms/doorbell.h"
#include "transport/msg/sessions.h"
#include "transport/stats/counters.h"

namespace ztcp::comms {

// The result of one turn.
struct TurnOutcome {
  bool moved = false;  // The turn did some work.
  // Bytes wait only for room to be sent: a turn will be due although no caller asks for one.
  bool leaves_unsent = false;
  // Sent and received. The poller decides by it whether the background thread takes over.
  std::uint64_t moved_bytes = 0;
};

class Backend {
 public:
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  // Called once, before the first turn on the poller's thread: starts the backend's own threads.
  virtual void start() {}
  // The process ends: the backend waits for no other thread beyond `end`.
  virtual void limit_waits(TimePoint) {}

  // Takes arrived bytes for the turn that follows, whose time is read after this call. A thread
  // that loses its CPU after the reading would give answers that arrive meanwhile a time too early,
  // and the path a round trip that it never had.
  virtual void poll() {}
  // One pass over all work: receive, take the posts of the clients that rang, run timers, send,
  // reap retired clients.
  virtual TurnOutcome turn(TimePoint now, Doorbell& doorbell) = 0;
  virtual TimePoint next_deadline() const = 0;

  // The sessions that comms begin here and, through the acceptor, those that peers begin. A session
  // handed to ListenerEvents belongs to the listener's side, and ends before the backend does.
  virtual msg::Sessions& sessions() = 0;
  // probe() asks the host with this address for an answer, on all connections with it.
  // heard_from(): when bytes last came from it on any of them; TimePoint::min(): none.
  virtual void probe(IpAddress remote) = 0;
  virtual TimePoint heard_from(TimePoint now, IpAddress remote) const = 0;
  // Number of streams and sessions that a process should let finish before it ends.
  virtual std::size_t unfinished() const = 0;
  // Called before NCCL gets memory back whose bytes were not acknowledged: from here on no queued
  // frame or call refers to posted memory.
  virtual void abandon_payload() = 0;

  // All counters, for an operator: "sent 12 frames (3456 bytes), ..."
  virtual std::string summary() const = 0;

  // The same for the statistics page: all counters that the backend has.
  virtual void read_counters(stats::CounterValues&) const {}
  // Bytes that are written and not yet sent.
  virtual std::uint64_t queued_bytes() const { return 0; }

  Clients& clients() { return clients_; }
  DeferredLog& deferred_log() { return deferred_log_; }
  void note_sent_message() { ++sent_messages_; }
  void note_received_message() { ++received_messages_; }
  std::uint64_t sent_messages() const { return sent_messages_; }
  std::uint64_t received_messages() const { return received_messages_; }
  // A receive of several buffers was posted.
  void note_group(std::size_t buffers) { groups_.note(buffers); }

  // --- Any thread --------------------------------------------------------------------------------
  // See link::Link.
  virtual std::uint32_t map_memory(const void* address, std::size_t size_bytes) = 0;
  virtual void unmap_memory(std::uint32_t key) = 0;

  // The state of the NIC or network interface under the backend.
  LinkState state() const { return state_.load(std::memory_order_relaxed); }
  virtual std::string down_advice() const = 0;  // "no carrier on ...: look at ..."
  // Why this host can't reach that address, as the end of a sentence; empty: no reason is known.
  virtual std::string route_advice(IpAddress) const { return {}; }
  // Advice on a failure, where this backend has better than the common one: "compare ...".
  virtual std::string advice_for(Errc) const { return {}; }
  virtual std::string lost_reason() const = 0;  // "NIC ztcp0 (...) was taken out of this machine"
  virtual const char* lost_advice() const = 0;
  virtual Error lost_error() const = 0;

 protected:
  Backend() = default;

  static_assert(Doorbell::kCapacity >= config::kMostConnections);
  Clients clients_{Doorbell::kCapacity};  // Cleared by the poller before the backend ends.
  DeferredLog deferred_log_;
  GroupCounts groups_;
  std::uint64_t sent_messages_ = 0;
  std::uint64_t received_messages_ = 0;
  std::atomic<LinkState> state_{LinkState::kUp};
};

}  // namespace ztcp::comms
