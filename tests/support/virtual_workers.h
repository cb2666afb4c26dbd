// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Workers of CopyJobs in virtual time. Each does its jobs in order, at times that a seeded
// generator draws, so that any worker overtakes any other. A worker falls asleep when idle and does
// nothing until it is woken.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <random>
#include <vector>

#include "core/clock.h"
#include "transport/msg/copy_jobs.h"

namespace ztcp::testing_support {

class VirtualWorkers final : public Workers {
 public:
  // A worker begins its next job up to `longest` after the one before.
  VirtualWorkers(std::size_t count, std::uint64_t seed,
                 Duration longest = std::chrono::microseconds(50))
      : longest_(longest), rng_(seed), workers_(count) {}
  void serve(msg::CopyJobs& jobs) { jobs_ = &jobs; }

  // Does the jobs that are due. Returns the time of the next one; kNever while there is none.
  TimePoint turn(TimePoint now) {
    now_ = now;
    TimePoint next = kNever;
    for (std::size_t i = 0; i < workers_.size(); ++i) {
      Worker& worker = workers_[i];
      while (worker.is_awake && worker.due <= now) {
        if (!jobs_->work(i)) {
          worker.is_awake = rng_() % 4 != 0;
          break;
        }
        ++done;
        worker.due = now + delay();
      }
      if (worker.is_awake) next = std::min(next, worker.due);
    }
    return jobs_->is_idle() ? kNever : std::max(next, now + Duration(1));
  }

  std::size_t count() const override { return workers_.size(); }
  void wake(std::size_t worker) override {
    if (workers_[worker].is_awake) return;
    workers_[worker] = {.is_awake = true, .due = now_ + delay()};
  }
  // Does a job at once, unless `is_stuck`.
  bool wait_for(std::size_t worker) override {
    ++waits;
    return !is_stuck && (jobs_->work(worker), ++done, true);
  }

  std::size_t done = 0;
  std::size_t waits = 0;
  bool is_stuck = false;

 private:
  struct Worker {
    bool is_awake = false;
    TimePoint due{};
  };
  Duration delay() {
    return Duration(static_cast<std::int64_t>(
        rng_() % static_cast<std::uint64_t>(std::max<std::int64_t>(longest_.count(), 1))));
  }

  const Duration longest_;
  std::mt19937_64 rng_;
  TimePoint now_{};
  std::vector<Worker> workers_;
  msg::CopyJobs* jobs_ = nullptr;
};

}  // namespace ztcp::testing_support
