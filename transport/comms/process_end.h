// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#pragma once

#include <chrono>
#include <ctime>
#include <memory>
#include <mutex>
#include <vector>

#include "transport/comms/nic.h"
#include "transport/core/clock.h"

namespace ztcp::comms {

using DrainDeadline = std::chrono::steady_clock::time_point;
// The last words on these NICs.
void drain(const std::vector<Nic*>& nics, DrainDeadline ends);

// The process ends, and its other threads may be anywhere: stopped in the middle of a turn, or here
// in this very call stack when a signal handler calls exit(). So every wait ends after `patience`.
// `mutex` guards `nics`, of which those that are not ours are null.
template <class AnyNic>
void drain(const std::vector<std::shared_ptr<AnyNic>>& nics, std::mutex& mutex, Duration patience) {
  constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 100'000};
  const DrainDeadline ends = std::chrono::steady_clock::now() + patience;
  std::unique_lock lock(mutex, std::defer_lock);
  while (!lock.try_lock()) {
    if (std::chrono::steady_clock::now() >= ends) return;
    nanosleep(&kPause, nullptr);
  }
  std::vector<Nic*> ours;
  for (const auto& nic : nics)
    if (nic != nullptr && nic->lost_poller() == nullptr) ours.push_back(nic.get());
  drain(ours, ends);
}

}  // namespace ztcp::comms
