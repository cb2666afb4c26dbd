// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Runs the turns of one Backend: when, and on which thread. Whoever holds the baton
// may run one:
//
//   dedicated  a background thread spins; NCCL's threads only ring the doorbell
//   shared     NCCL's threads run turns inside post and test, so that a small message leaves within
//              the call; the background thread wakes by deadline, so that ACKs, retransmissions
//              and keepalives flow when nobody calls, less often where it finds nothing to do; and
//              where it may, it takes over while there is much to move: NCCL's threads only ring
//              then, and have other connections to serve, unless they see that it runs no turn
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

#include "transport/comms/backend.h"
#include "transport/comms/baton.h"
#include "transport/comms/doorbell.h"
#include "transport/comms/late_turns.h"
#include "transport/comms/stall_watch.h"
#include "transport/core/clock.h"
#include "transport/core/result.h"
#include "transport/core/running_clock.h"
#include "transport/core/wake_event.h"
#include "transport/core/yielder.h"

namespace ztcp::comms {

struct PollerConfig {
  std::string name;    // Of the NIC, or "ztcp0 queue 2".
  std::string thread;  // At most 15 bytes.
  bool dedicated = false;
  Duration spin = std::chrono::microseconds(50);  // Without work, before yielding.
  Duration max_sleep = std::chrono::milliseconds(1);
  // Shared, where the background thread alone ran turns, and none moved anything: each sleep is
  // twice as long as the last, up to this. For who need not answer what comes: the kernel does.
  // Who leaves something unsent ends such a sleep.
  Duration max_idle_sleep{};
  std::shared_ptr<WakeEvent> wake;  // Ends the background thread's sleep. Null: one of its own.
  // Shared: the background thread runs the turns as long as the backend is laden.
  bool takes_over = false;
  // Where it has run no turn for so long, while it held nothing up, NCCL's threads take them back.
  Duration stall_timeout = std::chrono::microseconds(200);
  // A longer time between two turns does not count for the backend's deadlines (RunningClock).
  Duration longest_gap = std::chrono::seconds(1);
  // Where the thread may run, which would else be where the one that starts it may; empty: there.
  std::vector<std::uint32_t> cpus;
  // Run by the background thread about every millisecond, without the baton.
  std::function<void(TimePoint)> on_look;
  // Run at the start and the end of the background thread (DPDK wants its threads registered).
  std::function<void()> on_thread_start;
  std::function<void()> on_thread_end;
};

class Poller {
 public:
  Poller(PollerConfig config, std::unique_ptr<Backend> backend);
  virtual ~Poller();
  Poller(const Poller&) = delete;
  Poller& operator=(const Poller&) = delete;

  // Starts the background thread; later calls do nothing. All signals are blocked in it.
  Status start();
  // Ends it, and waits for that. Nothing starts it again.
  void stop();

  // The process ends: the thread says the last words on its connections (process_end.h), until
  // `end`. Does not wait and allocates nothing. Where the thread has ended, or is the caller, they
  // are said in here.
  void end_process(TimePoint end);
  bool has_ended_process() const { return has_ended_process_.load(); }

  // --- From NCCL's progress threads --------------------------------------------------------------
  // Posts of `client` wait in its ring.
  void ring(std::size_t client) { doorbell_.ring(client); }
  // After ring(): shared, runs a turn now; dedicated, wakes the thread if it sleeps.
  void kick() {
    if (!config_.dedicated) {
      progress();
    } else if (sleeping_.load()) {
      config_.wake->signal();
    }
  }
  // From test(): shared, runs a turn if nobody else does; dedicated, nothing.
  void progress() {
    if (!config_.dedicated) run_shared_turn();
  }

  // --- Control -----------------------------------------------------------------------------------
  // Runs body(now) with the baton held, then a turn, so that what it queued leaves.
  template <class Body>
  auto with_backend(Body&& body) {
    baton_.take();
    const BatonHold hold(*this);
    return turn_with(std::forward<Body>(body));
  }
  // The same for a process that ends: whoever holds the baton may never run again. False, and
  // nothing was run, once `gives_up()` says so.
  template <class GivesUp, class Body>
  bool with_backend_unless(GivesUp&& gives_up, Body&& body) {
    if (!baton_.take_unless(gives_up)) return false;
    const BatonHold hold(*this);
    turn_with(std::forward<Body>(body));
    return true;
  }

  // --- With the baton held -----------------------------------------------------------------------
  // Requests that somebody waits for; while there are any the thread yields but does not sleep.
  void note_outstanding(std::ptrdiff_t change) { outstanding_ += change; }
  // True when anything moved. Memory that ends is refused where it is asked for; an exception that
  // gets here all the same ends the turn, and neither the thread nor its hold of the baton.
  bool turn();
  // Has the line with all counts said, as `when` ("the process ends").
  void say_counts(const char* when);

  // --- Any thread --------------------------------------------------------------------------------
  // Its clients' indices are what ring() wants.
  Backend& backend() { return *backend_; }
  bool is_lost() const { return link::is_lost(backend_->state()); }
  const std::string& name() const { return config_.name; }
  bool dedicated() const { return config_.dedicated; }
  static TimePoint read_clock();
  // The backend's time.
  TimePoint backend_time() const { return clock_.peek(read_clock()); }
  // Connections that were dialled here and are not closed.
  std::uint32_t dialled() const { return dialled_.load(std::memory_order_relaxed); }
  void note_dialled(std::int32_t change) {
    dialled_.fetch_add(static_cast<std::uint32_t>(change), std::memory_order_relaxed);
  }

 private:
  // Who has taken the baton gives it back at the end of the scope.
  class BatonHold {
   public:
    explicit BatonHold(Poller& poller) : poller_(poller) {}
    // A logger may end its thread here (log.h).
    ~BatonHold() noexcept(false) { poller_.give_baton(); }
    BatonHold(const BatonHold&) = delete;
    BatonHold& operator=(const BatonHold&) = delete;

   private:
    Poller& poller_;
  };

  Duration idle() const { return last_turn_ - last_moved_; }
  void note_process_end();
  bool must_end_process() const { return process_ends_.load(std::memory_order_relaxed) != 0; }
  std::uint64_t give_baton();
  void give_and_speak();
  template <class Body>
  auto turn_with(Body&& body) {
    const TimePoint now = clock_.at(read_clock());
    struct TurnAfter {
      Poller& poller;
      ~TurnAfter() noexcept(false) { poller.turn(); }
    } turn_after{*this};
    return std::forward<Body>(body)(now);
  }
  void note_exception(const char* what);
  void look_elsewhere(TimePoint now);
  bool try_take_turn();
  void run_shared_turn();
  void sleep(TimePoint deadline, Duration longest);
  bool background_turn();
  void note_taken_back();
  void run_dedicated();
  void run_shared();
  void run_laden();

  PollerConfig config_;
  const std::unique_ptr<Backend> backend_;  // Guarded by the baton but for what any thread may ask.
  std::atomic<std::uint32_t> dialled_{0};

  Baton baton_;
  Yielder yielder_;          // The background thread's.
  Yielder callers_yielder_;  // NCCL's threads'.
  Doorbell doorbell_;
  // Read at each post; what the loop writes in every turn must not lie beside it.
  alignas(64) std::atomic<bool> sleeping_{false};
  std::atomic<bool> sleeps_long_{false};  // Longer than max_sleep, or is about to.
  std::atomic<bool> stopping_{false};
  std::atomic<Duration::rep> process_ends_{0};  // A point in time, until the thread has seen it.
  std::atomic<bool> has_ended_process_{false};
  std::atomic<bool> has_thread_ended_{false};
  std::atomic<bool> has_taken_over_{false};
  std::atomic<bool> is_called_{false};  // The background thread, to take over.
  // Written by whoever asks while it has; the thread reads has_taken_over_ in every turn.
  alignas(64) StallWatch stall_watch_;
  alignas(64) std::thread thread_;
  TimePoint next_look_elsewhere_{};  // The background thread's own.

  // Guarded by the baton.
  alignas(64) std::ptrdiff_t outstanding_ = 0;
  TurnOutcome last_outcome_;  // Of the last turn.
  RunningClock clock_;
  TimePoint last_turn_;
  TimePoint last_moved_;
  LateTurns late_turns_;                 // Of the background thread.
  TimePoint called_at_;                  // When it was called to take over, last.
  std::atomic<std::uint64_t> turns_{0};  // Anybody may read them.
  bool has_thrown_ = false;              // A turn, and it was said.
  bool has_started_backend_ = false;
};

}  // namespace ztcp::comms
