// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Runs the turns of one Engine over one Link: when, and on which thread. Whoever holds the baton
// may run one:
//
//   dedicated  a background thread spins; NCCL's threads only ring the doorbell
//   shared     NCCL's threads run turns inside post and test, so that a small message leaves within
//              the call; the background thread wakes by deadline, so that ACKs, retransmissions
//              and keepalives flow when nobody calls
//
// The background thread starts at the first start() and ends with stop(), or with the Poller. Of
// NCCL it calls the logger alone, and that without the baton.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "transport/core/clock.h"
#include "transport/core/result.h"
#include "transport/link/link.h"
#include "transport/ustack/baton.h"
#include "transport/ustack/doorbell.h"
#include "transport/ustack/engine/clients.h"
#include "transport/ustack/engine/engine.h"
#include "transport/ustack/engine/turn.h"
#include "transport/ustack/nic_log.h"

namespace ztcp::ustack {

struct PollerConfig {
  std::string name;              // Of the NIC, or "ztcp0 queue 2".
  std::string thread;            // At most 15 bytes.
  std::string link_description;  // For messages.
  std::string carrier_advice;    // What to look at where the link has no carrier.
  bool dedicated = false;
  Duration spin = std::chrono::microseconds(50);  // Without work, before yielding.
  Duration max_sleep = std::chrono::milliseconds(1);
  // Where the thread may run, which would else be where the one that starts it may; empty: there.
  std::vector<std::uint32_t> cpus;
  // Run by the background thread about every millisecond, without the baton.
  std::function<void(TimePoint)> on_look;
  // Run at the start and the end of the background thread (DPDK wants its threads registered).
  std::function<void()> on_thread_start;
  std::function<void()> on_thread_end;
};

class Poller final : private TurnEvents {
 public:
  Poller(PollerConfig config, std::unique_ptr<link::Link> link, const EngineConfig& engine);
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  // Starts the background thread; later calls do nothing. All signals are blocked in it.
  Status start();
  // Ends it, and waits for that. Nothing starts it again.
  void stop();

  // --- From NCCL's progress threads --------------------------------------------------------------
  // Posts of `client` wait in its ring.
  void ring(std::size_t client) { doorbell_.ring(client); }
  // After ring(): shared, runs a turn now; dedicated, wakes the thread if it sleeps.
  void kick() {
    if (!config_.dedicated) {
      progress();
    } else if (sleeping_.load()) {
      wake();
    }
  }
  // From test(): shared, runs a turn if nobody else does; dedicated, nothing.
  void progress() {
    if (!config_.dedicated) run_shared_turn();
  }

  // --- Control -----------------------------------------------------------------------------------
  // Runs body(engine, now) with the baton held, then a turn, so that what it queued leaves.
  template <class Body>
  auto with_engine(Body&& body) {
    baton_.take();
    const BatonHold hold(*this);
    return turn_with(std::forward<Body>(body));
  }
  // The same for a process that ends: whoever holds the baton may never run again. False, and
  // nothing was run, once `gives_up()` says so.
  template <class GivesUp, class Body>
  bool with_engine_unless(GivesUp&& gives_up, Body&& body) {
    if (!baton_.take_unless(gives_up)) return false;
    const BatonHold hold(*this);
    turn_with(std::forward<Body>(body));
    return true;
  }

  // --- With the baton held -----------------------------------------------------------------------
  // Their indices are what ring() wants.
  Clients& clients() { return clients_; }
  void abandon_payload() { turn_.abandon_payload(); }  // See Turn.
  // Requests that somebody waits for; while there are any the thread yields but does not sleep.
  void note_outstanding(std::ptrdiff_t change) { outstanding_ += change; }
  void note_group(std::size_t buffers) { turn_.note_group(buffers); }  // See Turn.
  // True when anything moved.
  bool turn();
  // Has the line with all counts said, as `when` ("the process ends").
  void say_counts(const std::string& when) { nic_log_.so_far(when, turn_.counts()); }

  link::LinkState link_state() const { return link_state_.load(std::memory_order_relaxed); }
  bool link_is_lost() const { return link::is_lost(link_state()); }
  // See NicLog.
  std::string lost_reason() const { return nic_log_.lost_reason(link_state()); }
  const char* lost_advice() const { return NicLog::lost_advice(link_state()); }
  Error lost_error() const { return NicLog::lost_error(link_state()); }
  link::Link& link() { return *link_; }  // Other threads: map_memory() and unmap_memory() only.
  const std::string& name() const { return config_.name; }
  const std::string& link_description() const { return config_.link_description; }
  const std::string& carrier_advice() const { return config_.carrier_advice; }
  bool dedicated() const { return config_.dedicated; }
  // Connections that were dialled here and are not closed. Any thread.
  std::uint32_t dialled() const { return dialled_.load(std::memory_order_relaxed); }
  void note_dialled(std::int32_t change) {
    dialled_.fetch_add(static_cast<std::uint32_t>(change), std::memory_order_relaxed);
  }

 private:
  // Who has taken the baton gives it back at the end of the scope.
  class BatonHold {
   public:
    explicit BatonHold(Poller& poller) : poller_(poller) {}
    ~BatonHold() { poller_.give_baton(); }
    BatonHold(const BatonHold&) = delete;
    BatonHold& operator=(const BatonHold&) = delete;

   private:
    Poller& poller_;
  };

  static TimePoint read_clock();
  std::uint64_t give_baton();
  void give_and_speak();
  template <class Body>
  auto turn_with(Body&& body) {
    const TimePoint now = read_clock();
    struct TurnAfter {
      Poller& poller;
      ~TurnAfter() { poller.turn(); }
    } turn_after{*this};
    return std::forward<Body>(body)(engine_, now);
  }
  void on_link_state(link::LinkState state) override;
  void on_warning(const Finding& finding) override { nic_log_.warn(finding); }
  void on_nobody_left(TimePoint now, const NicCounts& counts) override {
    nic_log_.nobody_left(now, counts);
  }
  void look_elsewhere(TimePoint now);
  void run_shared_turn();
  void wake();
  void sleep(TimePoint deadline);
  void run_dedicated();
  void run_shared();

  PollerConfig config_;
  std::unique_ptr<link::Link> link_;  // Destroyed after the engine and the clients.
  NicLog nic_log_;
  std::atomic<std::uint32_t> dialled_{0};

  Baton baton_;
  Doorbell doorbell_;
  // Read at each post; what the loop writes in every turn must not lie beside it.
  alignas(64) std::atomic<bool> sleeping_{false};
  std::atomic<bool> stopping_{false};
  std::atomic<link::LinkState> link_state_{link::LinkState::kUp};
  int wake_fd_ = -1;
  std::thread thread_;
  TimePoint next_look_elsewhere_{};  // The background thread's own.

  // Guarded by the baton.
  alignas(64) Engine engine_;
  Clients clients_{Doorbell::kCapacity};
  Turn turn_;
  std::ptrdiff_t outstanding_ = 0;
};

}  // namespace ztcp::ustack
