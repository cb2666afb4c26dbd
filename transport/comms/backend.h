// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What is behind comms: whatever carries the byte streams of their sessions. The userspace TCP is
// one (a NIC's queue: its link, stack and sessions), kernel sockets another. A Poller decides when
// it runs a turn, and on which thread; all that is not said to be any thread's happens with that
// poller's baton held.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <string>

#include "config/settings.h"
#include "transport/comms/clients.h"
#include "transport/comms/deferred_log.h"
#include "transport/comms/doorbell.h"
#include "transport/comms/group_counts.h"
#include "transport/core/address.h"
#include "transport/core/clock.h"
#include "transport/core/frame.h"
#include "transport/core/result.h"
#include "transport/link/link_state.h"
#include "transport/msg/sessions.h"

namespace ztcp::comms {

// The result of one turn.
struct TurnOutcome {
  bool moved = false;  // Anything.
  // Bytes wait for room alone: a turn will be due that nobody asks for.
  bool leaves_unsent = false;
  // Sent and received: whether the background thread should run the turns that follow.
  std::uint64_t moved_bytes = 0;
};

class Backend {
 public:
  Backend(const Backend&) = delete;
  Backend& operator=(const Backend&) = delete;
  virtual ~Backend() = default;

  // Once, before the first turn on a poller's thread: threads of its own.
  virtual void start() {}
  // The process ends: nothing is waited for beyond `end` that another thread has to do.
  virtual void limit_waits(TimePoint) {}

  // One pass over all there is to do: receive, take the posts of the clients who rang, run timers,
  // send, reap the clients that are done with.
  virtual TurnOutcome turn(TimePoint now, Doorbell& doorbell) = 0;
  virtual TimePoint next_deadline() const = 0;

  // Those that comms begin here and, by their acceptor, those that come to listeners. Sessions
  // handed to a listener's events belong to those, and end before the backend does.
  virtual msg::Sessions& sessions() = 0;
  // Asks the host with this address for a sign of life, over all connections with it; when there
  // was one last, on any of them.
  virtual void probe(IpAddress remote) = 0;
  virtual TimePoint heard_from(TimePoint now, IpAddress remote) const = 0;
  // What a process that ends should wait for; zero: it may go.
  virtual std::size_t unfinished() const = 0;
  // Called before anyone is told that memory is free again without its bytes having been
  // acknowledged: nothing that waits points there from here on.
  virtual void abandon_payload() = 0;

  // All that was counted, for an operator: "sent 12 frames (3456 bytes), ..."
  virtual std::string summary() const = 0;

  Clients& clients() { return clients_; }
  DeferredLog& deferred_log() { return deferred_log_; }
  // A receive of several buffers was posted.
  void note_group(std::size_t buffers) { groups_.note(buffers); }

  // --- Any thread --------------------------------------------------------------------------------
  // See link::Link.
  virtual std::uint32_t map_memory(const void* address, std::size_t size_bytes) = 0;
  virtual void unmap_memory(std::uint32_t key) = 0;

  // Of what it stands on: a NIC, a network interface.
  link::LinkState state() const { return state_.load(std::memory_order_relaxed); }
  virtual std::string down_advice() const = 0;  // "no carrier on ...: what to look at"
  // Why a peer may never be reached at that address, whatever it does, as the end of a sentence;
  // empty: nothing is known.
  virtual std::string route_advice(IpAddress) const { return {}; }
  // What an operator can do about a failure, where it is other than usual here: "compare ...".
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
  std::atomic<link::LinkState> state_{link::LinkState::kUp};
};

}  // namespace ztcp::comms
