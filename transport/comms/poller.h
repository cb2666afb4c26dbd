// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Decides when the turns of one Backend run, and on which thread. The holder of the baton runs one:
//
//   dedicated  a background thread spins; NCCL's threads only ring the doorbell
//   shared     NCCL's threads run turns inside post and test, so that a small message leaves within
//              the call. The background thread wakes by deadline, so that ACKs, retransmissions
//              and keepalives flow without calls, and sleeps longer where it finds nothing to do.
//              With `takes_over` it runs all turns while there is much to move: NCCL's threads
//              only ring then, and serve other connections, unless the thread runs no turns
//
// The background thread starts at the first start() and ends with stop(), or with the Poller. The
// logger is the only function of NCCL that it calls, without the baton.
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

#include "core/clock.h"
#include "core/result.h"
#include "core/running_clock.h"
#include "core/wake_event.h"
#include "core/yielder.h"
#include "transport/comms/backend.h"
#include "transport/comms/baton.h"
#include "transport/comms/doorbell.h"
#include "transport/comms/lane_page.h"
#include "transport/comms/late_turns.h"
#include "transport/comms/stall_watch.h"

namespace ztcp::comms {

struct PollerConfig {
  std::string name;    // For the log: the NIC's name, or "ztcp0 lane 2".
  std::string thread;  // The background thread's name, at most 15 bytes.
  bool dedicated = false;
  Duration spin = std::chrono::microseconds(50);  // Time without work before the thread yields.
  Duration max_sleep = std::chrono::milliseconds(1);
  // Shared, while only the background thread runs turns and none moves anything: each sleep is
  // twice as long as the one before, up to this. For backends where the kernel answers peers. A
  // caller that leaves unsent bytes wakes the thread early.
  Duration max_idle_sleep{};
  std::shared_ptr<WakeEvent> wake;  // Ends the background thread's sleep. Null: makes its own.
  // Shared: the background thread runs all turns while they move many bytes.
  bool takes_over = false;
  // NCCL's threads take the turns back when it has run none for this long and does not hold the
  // baton.
  Duration stall_timeout = std::chrono::microseconds(200);
  // A longer time between two turns does not count for the backend's deadlines (RunningClock).
  Duration longest_gap = std::chrono::seconds(1);
  LanePlace page;  // In the statistics page.
  // CPUs of the background thread; empty: those of the thread that calls start().
  std::vector<std::uint32_t> cpus;
  // Run by the background thread about every millisecond, without the baton.
  std::function<void(TimePoint)> on_check;
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

  // The process ends: the thread says goodbye on its connections (process_end.h), until `end`.
  // Neither waits nor allocates, except where the thread has ended or is the caller: then the
  // goodbye is said inside this call.
  void end_process(TimePoint end);
  bool has_ended_process() const { return has_ended_process_.load(); }

  // --- From NCCL's progress threads --------------------------------------------------------------
  // `client` has posts in its ring.
  void ring(std::size_t client) { doorbell_.ring(client); }
  // After ring(). Shared: runs a turn now. Dedicated: wakes the thread if it sleeps.
  void kick() {
    if (!config_.dedicated) {
      progress();
    } else if (sleeping_.load()) {
      config_.wake->signal();
    }
  }
  // From test(). Shared: runs a turn unless another thread does. Dedicated: does nothing.
  void progress() {
    if (!config_.dedicated) run_shared_turn();
  }

  // --- Control -----------------------------------------------------------------------------------
  // Runs body(now) with the baton held, then a turn, which sends the bytes that it queued.
  template <class Body>
  auto with_backend(Body&& body) {
    baton_.take();
    const BatonHold hold(*this);
    return turn_with(std::forward<Body>(body));
  }
  // The same for a process that ends, where the holder of the baton may never run again. False, and
  // nothing was run, once `gives_up()` returns true.
  template <class GivesUp, class Body>
  bool with_backend_unless(GivesUp&& gives_up, Body&& body) {
    if (!baton_.take_unless(gives_up)) return false;
    const BatonHold hold(*this);
    turn_with(std::forward<Body>(body));
    return true;
  }

  // --- With the baton held -----------------------------------------------------------------------
  // Counts the requests in flight; while there are any, a dedicated thread does not sleep.
  void note_outstanding(std::ptrdiff_t change) { outstanding_ += change; }
  // True when anything moved. The callers of allocations handle their failure; an exception that
  // still gets here ends the turn, but neither the thread nor its hold of the baton.
  bool turn();
  // When the turn that is running, or the last one, began.
  TimePoint turn_time() const { return last_turn_; }
  // Logs the line with all counters; `when` tells the occasion ("the process ends").
  void say_counts(const char* when);

  // --- Any thread --------------------------------------------------------------------------------
  // ring() takes the index of one of its clients.
  Backend& backend() { return *backend_; }
  bool is_lost() const { return ztcp::is_lost(backend_->state()); }
  const std::string& name() const { return config_.name; }
  const LanePlace& page() const { return config_.page; }
  bool dedicated() const { return config_.dedicated; }
  static TimePoint read_clock();
  // The backend's time, which stands still while the process is stopped (RunningClock).
  TimePoint backend_time() const { return clock_.peek(read_clock()); }
  // Number of open connections that this poller dialled.
  std::uint32_t dialled() const { return dialled_.load(std::memory_order_relaxed); }
  void note_dialled(std::int32_t change) {
    dialled_.fetch_add(static_cast<std::uint32_t>(change), std::memory_order_relaxed);
  }

 private:
  // Gives the baton back at the end of the scope.
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
  void check_elsewhere(TimePoint now);
  bool try_take_turn();
  void run_shared_turn();
  void sleep(TimePoint deadline, Duration longest);
  bool background_turn();
  void note_taken_back();
  void run_dedicated();
  void run_shared();
  void run_laden();

  PollerConfig config_;
  const std::unique_ptr<Backend> backend_;  // Guarded by the baton, but for calls by any thread.
  std::atomic<std::uint32_t> dialled_{0};

  Baton baton_;
  Yielder yielder_;          // For the background thread.
  Yielder callers_yielder_;  // For NCCL's threads.
  Doorbell doorbell_;
  // Read at each post, so on another cache line than words that every turn writes.
  alignas(64) std::atomic<bool> sleeping_{false};
  std::atomic<bool> sleeps_long_{false};  // It sleeps longer than max_sleep, or is about to.
  std::atomic<bool> stopping_{false};
  std::atomic<Duration::rep> process_ends_{0};  // end_process()'s `end`; zero: not called, or seen.
  std::atomic<bool> has_ended_process_{false};
  std::atomic<bool> has_thread_ended_{false};
  std::atomic<bool> has_taken_over_{false};
  std::atomic<bool> is_called_{false};  // The background thread was called to take over.
  // Written by callers while the thread has taken over, which reads has_taken_over_ in every turn.
  alignas(64) StallWatch stall_watch_;
  alignas(64) std::thread thread_;
  TimePoint next_check_elsewhere_{};  // Used by the background thread.

  // Guarded by the baton.
  alignas(64) std::ptrdiff_t outstanding_ = 0;
  TurnOutcome last_outcome_;  // The last turn's.
  RunningClock clock_;
  TimePoint last_turn_;
  TimePoint last_moved_;
  LanePage lane_page_;
  LateTurns late_turns_;                 // The background thread's.
  TimePoint called_at_;                  // When it was last called to take over.
  std::atomic<std::uint64_t> turns_{0};  // Any thread may read it.
  bool has_thrown_ = false;              // A turn has thrown, which was logged.
  bool has_started_backend_ = false;
};

}  // namespace ztcp::comms
