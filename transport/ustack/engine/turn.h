// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One pass over all that a NIC's lane has to do: receive, take the clients' posts, run timers and
// sessions, give frames back, transmit, bury who is done with. Now and then it looks at the link's
// state and at what was counted.
//
// A value: told the time and whose doorbell was rung; what happened comes out as events. It knows
// no thread, no clock and no words, so that the simulator runs the turn of the product. Owned by a
// Lane, used with its poller's baton held.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "transport/comms/clients.h"
#include "transport/core/clock.h"
#include "transport/core/frame.h"
#include "transport/link/link.h"
#include "transport/ustack/engine/engine.h"
#include "transport/ustack/engine/nic_counts.h"
#include "transport/ustack/engine/nic_watch.h"
#include "transport/ustack/engine/transmitter.h"

namespace ztcp::ustack {

// What whoever runs turns hears from inside them; all of it seldom.
class TurnEvents {
 public:
  // It changed. Clients hear of a lost link after this.
  virtual void on_link_state(link::LinkState state) = 0;
  virtual void on_warning(const Finding& finding) = 0;
  virtual void on_path_mtu(TimePoint now, const tcp::PathMtuChange& change) = 0;
  // The last client was buried.
  virtual void on_nobody_left(TimePoint now) = 0;
  // Every Turn::kWatchInterval.
  virtual void on_watch(TimePoint) {}

 protected:
  ~TurnEvents() = default;
};

class Turn {
 public:
  // How often the state of the link is looked at.
  static constexpr Duration kLookInterval = std::chrono::milliseconds(1);
  // How often its counts are held against what is worth a warning.
  static constexpr Duration kWatchInterval = std::chrono::seconds(1);

  // All four outlive it.
  Turn(TimePoint now, link::Link& link, Engine& engine, comms::Clients& clients, TurnEvents& events)
      : link_(link),
        engine_(engine),
        clients_(clients),
        events_(events),
        transmitter_(link.capabilities()),
        last_(now) {}

  // `posts(visit)` calls visit(index) for each client that has some. True when anything moved.
  template <class Posts>
  bool run(TimePoint now, Posts&& posts) {
    begin(now);
    // Frames first, timers after: what arrived during a gap must not be taken for lost.
    bool moved = receive(now);
    posts([&](std::size_t client) { moved |= clients_.on_doorbell(client, now); });
    engine_.on_timers(now);
    release_held();
    moved |= transmitter_.run(engine_, link_, now);
    if (clients_.has_retired()) [[unlikely]]
      bury_retired(now);
    return moved;
  }

  // What still waits here points at user memory no more, and what the link took is noted. Called
  // before anyone is told that memory is free again without its bytes having been acknowledged.
  void abandon_payload() {
    transmitter_.detach_payload();
    link_.note_abandoned_payload();
  }

  NicCounts counts() const;  // Groups are the comms' to count.

 private:
  static constexpr std::size_t kBurst = 32;
  // Received in a turn: bounds the time until it sends again.
  static constexpr std::size_t kBurstsPerTurn = 4;

  void begin(TimePoint now) {
    engine_.stack().note_poll_gap(now, now - last_);
    last_ = now;
    if (now >= next_look_) look(now);
  }
  void look(TimePoint now);
  bool receive(TimePoint now);
  void release_held();
  void bury_retired(TimePoint now);

  link::Link& link_;
  Engine& engine_;
  comms::Clients& clients_;
  TurnEvents& events_;
  std::array<RxFrame, kBurst> rx_{};
  Transmitter transmitter_;
  NicWatch watch_;
  link::LinkState link_state_ = link::LinkState::kUp;  // When it was looked at.
  TimePoint last_;                                     // When the last one was.
  TimePoint next_look_{};
  TimePoint next_watch_{};
};

}  // namespace ztcp::ustack
