// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/worker_threads.h"

#include <chrono>
#include <linux/futex.h>
#include <new>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>
#include <utility>

#include "core/cpu_pause.h"
#include "core/own_thread.h"

namespace ztcp {
namespace {

// Calls of work_ between two readings of the clock.
constexpr int kPolls = 32;
// Pauses of a waiting giver between two yields.
constexpr std::uint32_t kPauses = 64;

void futex(std::atomic<std::uint32_t>& word, int operation, std::uint32_t value) {
  static_assert(sizeof(word) == sizeof(std::uint32_t));
  syscall(SYS_futex, &word, operation | FUTEX_PRIVATE_FLAG, value, nullptr, nullptr, 0);
}

}  // namespace

Status WorkerThreads::start(std::size_t count, Options options,
                            std::function<bool(std::size_t)> work) {
  options_ = std::move(options);
  work_ = std::move(work);
  for (std::size_t i = 0; i < count; ++i) {
    try {
      threads_.emplace_back();
    } catch (const std::bad_alloc&) {
      return fail(Errc::kOutOfMemory, "workers");
    }
    Worker& worker = threads_.back();
    auto thread =
        start_thread(options_.name + std::to_string(i), [this, &worker, i] { run(worker, i); });
    if (!thread) {
      threads_.pop_back();
      return tl::unexpected(thread.error());
    }
    worker.thread = std::move(*thread);
  }
  return {};
}

void WorkerThreads::stop() {
  stopping_.store(true);
  for (std::size_t i = 0; i < threads_.size(); ++i) {
    if (!threads_[i].thread.joinable()) continue;
    wake(i);
    threads_[i].thread.join();
  }
}

void WorkerThreads::wake(std::size_t worker) {
  std::atomic<std::uint32_t>& sleeping = threads_[worker].sleeping;
  if (sleeping.load() == 0) return;
  sleeping.store(0);
  futex(sleeping, FUTEX_WAKE, 1);
}

bool WorkerThreads::wait_for(std::size_t) {
  if (++waits_ % kPauses != 0) {
    cpu_pause();
    return true;
  }
  yielder_.yield();
  const TimePoint::rep ends = wait_deadline_.load(std::memory_order_relaxed);
  return ends == kNever.time_since_epoch().count() ||
         std::chrono::steady_clock::now().time_since_epoch() < Duration(ends);
}

// False: there was no job within options_.spin.
bool WorkerThreads::poll_for_work(std::size_t number) {
  const auto gives_up = std::chrono::steady_clock::now() + options_.spin;
  do {
    for (int i = 0; i < kPolls; ++i) {
      if (work_(number)) return true;
      cpu_pause();
    }
  } while (!stopping_.load(std::memory_order_relaxed) &&
           std::chrono::steady_clock::now() < gives_up);
  return false;
}

void WorkerThreads::run(Worker& worker, std::size_t number) {
  if (!options_.cpus.empty()) {
    cpu_set_t set;
    CPU_ZERO(&set);
    for (const std::uint32_t cpu : options_.cpus) CPU_SET(cpu, &set);
    // If the cpuset shrank meanwhile, only locality is lost.
    sched_setaffinity(0, sizeof(set), &set);
  }
  while (true) {
    while (poll_for_work(number)) {
    }
    // A giver reads this word after it gave a job, stop() after it set stopping_.
    worker.sleeping.store(1);
    if (!work_(number)) {
      if (stopping_.load()) return;
      futex(worker.sleeping, FUTEX_WAIT, 1);
    }
    worker.sleeping.store(0);
  }
}

}  // namespace ztcp
