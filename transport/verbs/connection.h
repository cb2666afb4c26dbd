// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One connection between two devices, over one rail or several. The control thread makes it and
// releases it last; once it is ready, the comm's thread uses its traffic. Over several rails, or
// over TCP alone, the control thread takes part under its lock: it recovers rails that have failed.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "core/address.h"
#include "transport/transport.h"
#include "transport/verbs/connection_report.h"
#include "transport/verbs/exchange.h"
#include "transport/verbs/peer_status.h"
#include "transport/verbs/queue_pairs.h"
#include "transport/verbs/rail.h"
#include "transport/verbs/rail_state.h"
#include "transport/verbs/recovery.h"
#include "transport/verbs/traffic.h"

namespace ztcp::verbs {

// The peer writes a sender's ring; a receiver writes its slots from its own.
struct alignas(4096) ControlMemory {
  Ring ring{};
};

class Connection final {
 public:
  enum class Phase : std::uint8_t { kConnecting, kReady, kFailed };

  Connection(std::shared_ptr<RailSet> rails, Direction direction, Endpoint peer)
      : rails_(std::move(rails)),
        direction_(direction),
        peer_(peer),
        traffic_(direction),
        recovery_(*rails_, traffic_, peer_status_, peer) {}
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // --- The thread that makes it ------------------------------------------------------------------
  // Creates queue pairs; to fit those of `peer`, if its facts are known. `traffic_class`: the
  // communicator's.
  Result<void, ReasonedError> prepare(int traffic_class, const EndFacts* peer = nullptr);
  EndFacts facts() const;
  Result<void, ReasonedError> join(const EndFacts& peer);
  // Whether a connection manager has to join its queue pairs (iWARP). Begun after join().
  bool needs_manager() const;
  void begin_cm_connection(std::shared_ptr<ConnectionManager> manager, const Nonce& nonce);
  const CmConnection& cm_connection() const {
    return *rail_states().front().queues->cm_connection();
  }
  void succeed() { phase_.store(Phase::kReady, std::memory_order_release); }
  void fail(const Error& error);
  // Before the comm has it. Null: the statistics page is off.
  void set_report(std::unique_ptr<ConnectionReport> report) { report_ = std::move(report); }

  // --- Any thread --------------------------------------------------------------------------------
  Phase phase() const { return phase_.load(std::memory_order_acquire); }
  const Error& error() const { return error_; }  // In phase kFailed.
  PeerStatus& peer_status() { return peer_status_; }
  const PeerStatus& peer_status() const { return peer_status_; }
  RailSet& rails() const { return *rails_; }
  Direction direction() const { return direction_; }
  Endpoint peer() const { return peer_; }  // The endpoint of the exchange.
  // The comm can't go on.
  void note_failed() { has_failed_.store(true, std::memory_order_relaxed); }
  // It was not made, or can't go on, by this end's fault or the peer's.
  bool has_failed() const {
    return phase() == Phase::kFailed || has_failed_.load(std::memory_order_relaxed) ||
           (peer_status_.has_ended() && peer_status_.event() != PeerEvent::kClosed);
  }
  ConnectionReport* report() const { return report_.get(); }

  // --- Under its lock ----------------------------------------------------------------------------
  // Over one rail of RDMA the comm's thread is the only user, and nothing is locked.
  std::unique_lock<std::mutex> lock() {
    return traffic_.recovers() ? std::unique_lock(mutex_) : std::unique_lock<std::mutex>();
  }
  Traffic& traffic() { return traffic_; }
  const Traffic& traffic() const { return traffic_; }
  Recovery& recovery() { return recovery_; }
  // Since join(): of the rails that both ends have.
  std::span<const RailState> rail_states() const { return traffic_.rails(); }
  const EndFacts& peer_facts() const { return traffic_.peer_facts(); }
  const ControlMemory& memory() const { return *memory_; }
  // Whether the peer is to be told something, or a rail has refused work.
  bool needs_attention() const { return recovery_.notes().has_new() || traffic_.has_broken(); }
  Carried carried() const;

 private:
  bool match(const EndFacts& peer);
  Result<void, ReasonedError> add_rail(std::size_t rail, const QueuePairSettings& settings);
  RailState& new_rail(std::size_t rail);

  const std::shared_ptr<RailSet> rails_;
  const Direction direction_;
  const Endpoint peer_;
  std::atomic<Phase> phase_{Phase::kConnecting};
  std::atomic<bool> has_failed_{false};
  Error error_;
  PeerStatus peer_status_;
  std::mutex mutex_;
  std::unique_ptr<ControlMemory> memory_;  // Outlives the regions in traffic_.
  Traffic traffic_;
  Recovery recovery_;
  std::unique_ptr<ConnectionReport> report_;
};

}  // namespace ztcp::verbs
