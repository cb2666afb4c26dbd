// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The state of one rail of a connection.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/clock.h"
#include "core/result.h"
#include "transport/verbs/exchange.h"
#include "transport/verbs/queue_pairs.h"
#include "transport/verbs/rail.h"
#include "transport/verbs/session/holdings.h"
#include "transport/verbs/socket_pipe.h"

namespace ztcp::verbs {

// Members are destroyed in reverse order; keep this order.
struct RailState {
  // The one state of the rail's health. A rail that fails goes from kUp to kDown, at a receiver by
  // way of kDraining, and returns to kUp after an offer of the sender. A rail of TCP begins in
  // kDown.
  enum class Health : std::uint8_t {
    kUp,
    kDraining,  // The receiver's queue pairs are in the error state and give back their receives.
    kMute,      // The receiver's device gives nothing back, and may still write to memory.
    kFenced,    // Our queue pairs are destroyed; the peer's may not be.
    kDown,      // Both ends' queue pairs are destroyed.
    kOffered,   // The sender has offered new queue pairs.
    kProving,   // The sender waits for the first work on them to complete.
    kAccepted,  // The receiver has accepted them, and the sender proves them.
  };

  // A rail that does not serve is polled at this interval while the comm does not poll it.
  static constexpr Duration kCheckAfter = std::chrono::milliseconds(2);
  // Between the failure and the first offer.
  static constexpr Duration kFirstPause = std::chrono::seconds(1);

  // A work request that asks for an answer of the peer's NIC (peer_probe.h).
  struct Probe {
    bool is_out = false;
    TimePoint due{};  // When to send the next one.
    TimePoint sent_at{};
  };

  // Whether the comm's thread polls its completions.
  bool is_polled() const { return may_carry() || is_draining(); }
  // Whether it carries messages, or the sender may already believe so.
  bool may_carry() const { return health == Health::kUp || health == Health::kAccepted; }
  bool is_draining() const { return health == Health::kDraining || health == Health::kMute; }
  bool is_tcp() const { return rail->device.is_tcp; }
  // For the statistics page: "up".
  const char* health_text() const;
  // For the peer.
  void describe(RailFacts& facts) const;

  std::shared_ptr<Rail> rail;
  std::uint8_t number = 0;  // Among the rails of its kind.
  std::uint8_t key = 0;     // Index of its device's keys in RailKeys.
  RegionHandle region;      // For the connection's memory.
  QueuePairSettings settings;
  std::unique_ptr<QueuePairs> queues;
  std::unique_ptr<RailStream> stream;  // For a rail of TCP, which has no queue pairs.
  std::optional<std::uint8_t> dscp{};  // Its stream's; absent: the NIC's.
  Ticket ticket{};  // A receiver's rail of TCP: the stream that begins with it is the sender's.
  std::uint32_t first_queue_pair = 0;  // Among all of the connection.

  Health health = Health::kUp;
  std::uint32_t epoch = 0;         // How often queue pairs were offered.
  std::uint32_t failures = 0;      // How often it has failed,
  std::uint32_t recoveries = 0;    // and come back after that.
  std::string unjoined;            // Why the first queue pairs were not joined; empty: they were.
  std::optional<Error> broken_by;  // Why a queue pair has refused work.
  // Since the peer has fenced the rail: the pieces that a receiver holds, or that a sender saw
  // arrive.
  std::optional<Holdings> peer_holdings;
  bool is_awaited = false;      // A rail of TCP that has not been up yet (Recovery::await_tcp).
  TimePoint due = kNever;       // When the next step is due.
  TimePoint gives_up = kNever;  // When the current step has failed.
  Duration check_after{};       // Until a stream that is dialled is polled next.
  Duration pause{};             // Until the next offer.
  std::uint32_t proofs = 0;     // Work requests in flight that prove new queue pairs.
  Probe probe;
};

}  // namespace ztcp::verbs
