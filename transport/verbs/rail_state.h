// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What a connection has on one of its rails.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>

#include "transport/core/clock.h"
#include "transport/verbs/queue_pairs.h"
#include "transport/verbs/rail.h"
#include "transport/verbs/session/holdings.h"
#include "transport/verbs/socket_pipe.h"

namespace ztcp::verbs {

// Members go from the last to the first.
struct RailState {
  // A rail that fails goes from kUp to kDown, at a receiver by way of kDraining, and by what the
  // sender offers then back to kUp. One of TCP begins with kDown.
  enum class Health : std::uint8_t {
    kUp,
    kDraining,  // Its queue pairs are in the error state, and give back what was posted.
    kFenced,    // They are no more; the peer's may be.
    kDown,      // Nor are they.
    kOffered,   // The sender's: new ones were offered.
    kProving,   // The sender's: something goes over them and comes back.
    kAccepted,  // The receiver's: the sender proves them.
  };

  // What goes on over one that does not serve is asked for so often while nobody else asks, and it
  // is offered again after so long.
  static constexpr Duration kLook = std::chrono::milliseconds(2);
  static constexpr Duration kFirstPause = std::chrono::seconds(1);
  // Whether the peer's NIC answers is asked so often while its TCP is silent.
  static constexpr Duration kProbeInterval = std::chrono::seconds(1);

  // NCCL's threads ask what is completed on it.
  bool is_polled() const {
    return health == Health::kUp || health == Health::kDraining || health == Health::kAccepted;
  }
  bool is_tcp() const { return rail->device.is_tcp; }

  std::shared_ptr<Rail> rail;
  std::uint8_t number = 0;  // Among the rails of its kind.
  std::uint8_t key = 0;     // Which of the device's keys are its.
  RegionHandle region;      // Of the connection's memory.
  QueuePairSettings settings;
  std::unique_ptr<QueuePairs> queues;
  // Of a rail of TCP, which has none.
  std::unique_ptr<RailStream> stream;
  Ticket ticket{};                     // The receiver's: who says it is the sender.
  std::uint32_t first_queue_pair = 0;  // Among all of the connection.
  Health health = Health::kUp;
  std::uint32_t epoch = 0;  // Of its queue pairs.
  std::string unjoined;     // Why its first queue pairs were not joined; empty: they were.
  bool is_peer_fenced = false;
  // A receiver's that drains: its device gives receives back no more (Connection::drain).
  bool is_mute = false;
  bool is_awaited = false;      // Of TCP, which has not been up yet (Connection::await_tcp).
  Holdings peer_holdings;       // Of one that has: what a receiver holds, or a sender saw arrive.
  TimePoint due = kNever;       // When there is something to do about it.
  TimePoint gives_up = kNever;  // When what is under way has failed.
  Duration look{};              // Until that is asked next.
  Duration pause{};             // Until it is offered again.
  std::uint32_t proofs = 0;     // That are under way.
  bool is_probed = false;       // A probe is under way.
  TimePoint probe_due{};        // Not before.
  TimePoint probed_at{};        // The one that is under way.
};

}  // namespace ztcp::verbs
