// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Rails of a connection that fail, and how they come back. session/holdings.h gives the order of
// the steps by which both ends give up a rail (recovery.cc), exchange.h the records by which a new
// one is offered, accepted and proven (recovery_offers.cc). RailState::health is the state of each
// rail. All calls are made under the connection's lock.
#pragma once

#include <cstddef>
#include <string>

#include "core/address.h"
#include "transport/verbs/exchange.h"
#include "transport/verbs/note_log.h"
#include "transport/verbs/peer_status.h"
#include "transport/verbs/rail.h"
#include "transport/verbs/rail_state.h"
#include "transport/verbs/traffic.h"

namespace ztcp::verbs {

class Recovery {
 public:
  // All outlive it.
  Recovery(const RailSet& rail_set, Traffic& traffic, const PeerStatus& peer_status, Endpoint peer)
      : rail_set_(rail_set), traffic_(traffic), peer_status_(peer_status), peer_(peer) {}
  Recovery(const Recovery&) = delete;
  Recovery& operator=(const Recovery&) = delete;

  // --- Rails that fail ---------------------------------------------------------------------------
  // The rail has failed: its messages go over the others. False: no other rail can carry them, and
  // none is awaited.
  bool lose(std::size_t rail, const std::string& why);
  // All rails of the device, or those with the given completion queue or queue pair.
  bool lose(const OpenDevice& device, const FailedPart& part, const std::string& why);
  // Only where another rail is left.
  void lose(const Rail& rail, const std::string& why);
  // The rails that can't be used from the start: a port is down, or its queue pairs could not be
  // joined. The peer is told before anything goes over them. Before the connection is ready. An
  // error: no rail is left.
  Status lose_unfit();
  // The rails with queue pairs that have refused work. An error: no rail is left.
  Status lose_broken();
  // A completion of a rail that drains, with any status; then whether it was the last.
  void take_drained(std::size_t rail, const ibv_wc& completion);
  void finish_draining(std::size_t rail);
  // The peer has closed, so it holds all that was sent.
  void peer_has_all();

  // --- Rails that come back ----------------------------------------------------------------------
  // Until then the connection waits for its rails of TCP to come up for the first time, if all
  // others fail. Before the connection is ready.
  void await_tcp(TimePoint until);
  // The rail's port is up again: its next offer need not wait.
  void offer_soon(const Rail& rail, TimePoint now);
  // Takes a stream that was dialled with the ticket. False: the ticket is not of this connection.
  bool take_stream(const Ticket& ticket, Fd& fd);

  // --- The control thread ------------------------------------------------------------------------
  // A note of the peer's. An error ends the connection.
  Status hear(const RailNote& told, TimePoint now);
  // Takes the steps that are due. An error ends the connection.
  Status advance(TimePoint now);
  TimePoint due() const;
  // Notes for the peer.
  NoteLog& notes() { return notes_; }
  const NoteLog& notes() const { return notes_; }

 private:
  bool is_lost() const;
  void note(RailNote::Step step, const RailState& state);
  void fence(RailState& state);
  Status hand_over(RailState& state, TimePoint now);
  Status drain(RailState& state, TimePoint now);
  Status fence_mute(RailState& state, TimePoint now);

  void offer(RailState& state, TimePoint now);
  Status drop_offer(RailState& state, const std::string& why, TimePoint now);
  Status accept(RailState& state, const RailNote& told);
  bool open(RailState& state, const RailNote& told);
  bool join_again(RailState& state, const RailNote& told);
  Status prove(RailState& state, const RailNote& told, TimePoint now);
  Status dial(RailState& state, const RailNote& told, TimePoint now);
  Status check_proofs(RailState& state, TimePoint now);
  Result<bool> is_welcome(RailState& state);
  Status rejoin(RailState& state);

  const RailSet& rail_set_;
  Traffic& traffic_;
  const PeerStatus& peer_status_;
  const Endpoint peer_;  // The endpoint of the exchange.
  NoteLog notes_;
  TimePoint awaits_until_ = kNever;
};

}  // namespace ztcp::verbs
