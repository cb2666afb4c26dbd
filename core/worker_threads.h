// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Threads that do the jobs of rings (job_ring.h), of any kind. They poll for work for a while, then
// sleep until they are woken. All signals are blocked in them; a forked child has none.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "core/clock.h"
#include "core/job_ring.h"
#include "core/result.h"
#include "core/yielder.h"

namespace ztcp {

class WorkerThreads final : public Workers {
 public:
  // Longest worker number in a thread's name.
  static constexpr std::size_t kNumberBytes = 2;

  struct Options {
    std::string name;                 // Prefix of the threads' names, before their number.
    std::vector<std::uint32_t> cpus;  // Allowed CPUs; empty: those of the caller of start().
    Duration spin{};                  // Time without work before they sleep.
  };

  WorkerThreads() = default;
  ~WorkerThreads() { stop(); }
  WorkerThreads(const WorkerThreads&) = delete;
  WorkerThreads& operator=(const WorkerThreads&) = delete;

  // `work(worker)` does that worker's next job and returns whether there was one. To be called
  // once; on failure there are fewer than `count` workers, maybe none.
  Status start(std::size_t count, Options options, std::function<bool(std::size_t)> work);
  // Waits until the workers have done all their jobs, and ends them.
  void stop();

  // --- Workers: the thread that gives them jobs --------------------------------------------------
  std::size_t count() const override { return threads_.size(); }
  void wake(std::size_t worker) override;
  bool wait_for(std::size_t worker) override;
  // Any thread. wait_for() gives up at `end`: the process ends, and workers may have stopped
  // anywhere.
  void set_wait_deadline(TimePoint end) {
    wait_deadline_.store(end.time_since_epoch().count(), std::memory_order_relaxed);
  }

 private:
  struct Worker {  // The thread knows its own, not the list.
    std::thread thread;
    alignas(64) std::atomic<std::uint32_t> sleeping{0};  // Futex word.
  };

  void run(Worker& worker, std::size_t number);
  bool poll_for_work(std::size_t number);

  Options options_;
  std::function<bool(std::size_t)> work_;
  std::deque<Worker> threads_;
  std::atomic<bool> stopping_{false};
  std::atomic<TimePoint::rep> wait_deadline_{kNever.time_since_epoch().count()};
  // Used by the giver.
  std::uint32_t waits_ = 0;
  Yielder yielder_;
};

}  // namespace ztcp
