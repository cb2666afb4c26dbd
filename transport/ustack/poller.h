// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Drives one Engine over one Link. A turn reads the clock once, receives, runs posts, timers and
// sessions, and transmits. Whoever holds the baton may run a turn:
//
//   dedicated  a background thread spins; NCCL's threads only ring the doorbell
//   shared     NCCL's threads run turns inside post and test, so that a small message leaves within
//              the call; the background thread wakes by deadline, so that ACKs, retransmissions
//              and keepalives flow when nobody calls
//
// The background thread starts at the first start() and ends with the Poller. Of NCCL it calls the
// logger alone, and that without the baton.
#pragma once

#include <array>
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
#include "transport/core/frame.h"
#include "transport/core/log.h"
#include "transport/core/result.h"
#include "transport/link/link.h"
#include "transport/ustack/baton.h"
#include "transport/ustack/doorbell.h"
#include "transport/ustack/end_log.h"
#include "transport/ustack/engine/engine.h"
#include "transport/ustack/engine/transmitter.h"
#include "transport/ustack/nic_watch.h"

namespace ztcp::ustack {

class Poller;

struct PollerConfig {
  std::string name;              // Of the NIC; the thread is called "ztcp-<name>".
  std::string link_description;  // For messages.
  bool dedicated = false;
  Duration spin = std::chrono::microseconds(50);  // Without work, before yielding.
  Duration max_sleep = std::chrono::milliseconds(1);
  // Where the thread may run, which would else be where the one that starts it may; empty: there.
  std::vector<std::uint32_t> cpus;
  // Run by the background thread about every millisecond, without the baton.
  std::function<void(Poller&, TimePoint)> on_look;
  // Run at the start and the end of the background thread (DPDK wants its threads registered).
  std::function<void()> on_thread_start;
  std::function<void()> on_thread_end;
};

// Something with posts for the engine: a comm. Owned by the Poller from attach() to retire().
class PollerClient {
 public:
  virtual ~PollerClient() = default;
  // Both with the baton held. The doorbell was rung:
  virtual void on_doorbell(TimePoint now) = 0;
  // The NIC was taken out or reset; said again for clients that are attached later.
  virtual void on_link_lost(TimePoint now) = 0;
  // The process that owns the NIC `peer` is gone, says `why`.
  virtual void on_peer_died(TimePoint now, Ipv4Address peer, const std::string& why) = 0;
  // The process ends, and memory that was posted may be going: tells the peer; then, when it was
  // waited for that, resets what is left.
  virtual void say_goodbye(TimePoint now) = 0;
  virtual void cut_off(TimePoint now) = 0;
};

// Counters that other threads may read at any time; a snapshot at most a millisecond old.
struct PollerCounters {
  std::atomic<std::uint64_t> turns{0};
  std::atomic<std::uint64_t> idle_turns{0};
  std::atomic<std::uint64_t> longest_gap_ns{0};
};

class Poller {
 public:
  Poller(PollerConfig config, std::unique_ptr<link::Link> link, const EngineConfig& engine);
  ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  // Starts the background thread; later calls do nothing. All signals are blocked in it.
  Status start();

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
  // Takes ownership; the index is what ring() wants. Fails with kFull when full.
  Result<std::size_t> attach(std::unique_ptr<PollerClient> client);
  // Destroys the client at the end of this turn: safe from inside its own session's events.
  void retire(std::size_t client);
  template <class Visit>
  void for_each_client(Visit&& visit) {
    for (const auto& client : clients_)
      if (client != nullptr) visit(*client);
  }
  // What still waits here points at user memory no more, and what the link took is noted. Called
  // before anyone is told that memory is free again without its bytes having been acknowledged.
  void abandon_payload() {
    transmitter_.detach_payload();
    link_->note_abandoned_payload();
  }
  // Requests that somebody waits for; while there are any the thread yields but does not sleep.
  void note_outstanding(std::ptrdiff_t change) { outstanding_ += change; }
  // One pass; true when anything moved.
  bool turn();
  // Has the line with all counts said, as `when` ("the process ends").
  void say_counts(const std::string& when);

  link::LinkState link_state() const { return link_state_.load(std::memory_order_relaxed); }
  // The three below are for a link that is lost.
  bool link_is_lost() const { return link::is_lost(link_state()); }
  // "NIC ztcp0 (0000:3b:00.0 net_virtio) was taken out of this machine"
  std::string lost_reason() const;
  const char* lost_advice() const;
  Error lost_error() const;
  link::Link& link() { return *link_; }  // Other threads: map_memory() and unmap_memory() only.
  const std::string& name() const { return config_.name; }
  const std::string& link_description() const { return config_.link_description; }
  bool dedicated() const { return config_.dedicated; }
  const PollerCounters& counters() const { return counters_; }
  EndLog& end_log() { return end_log_; }

 private:
  static constexpr std::size_t kBurst = 32;
  // Received in a turn: bounds the time until it sends again.
  static constexpr std::size_t kBurstsPerTurn = 4;

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
  bool give_baton();
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
  bool receive(TimePoint now);
  void release_held();
  void bury_retired(TimePoint now);
  NicCounts counts() const;
  void look_around(TimePoint now);
  void look_elsewhere(TimePoint now);
  void run_shared_turn();
  void wake();
  void sleep(TimePoint deadline);
  void run_dedicated();
  void run_shared();

  PollerConfig config_;
  std::unique_ptr<link::Link> link_;  // Destroyed after the engine and the clients.
  Engine engine_;
  std::vector<std::unique_ptr<PollerClient>> clients_;
  std::vector<std::size_t> free_indices_;
  std::vector<std::size_t> retired_;

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
  alignas(64) TimePoint last_turn_{};
  TimePoint last_work_{};
  TimePoint next_look_{};
  std::ptrdiff_t outstanding_ = 0;
  std::array<RxFrame, kBurst> rx_{};
  Transmitter transmitter_;
  NicWatch watch_;
  TimePoint next_watch_{};
  TimePoint next_summary_{};
  struct Line {
    log::Level level;
    std::string text;
  };
  std::vector<Line> to_say_;  // Once the baton is given: a logger may block.
  PollerCounters counters_;
  EndLog end_log_;
};

}  // namespace ztcp::ustack
