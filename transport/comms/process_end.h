// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The end of the process: each poller's thread tells the peers of its connections, lets streams
// finish, and cuts off the rest. The thread that called exit() only waits for that, with a limit,
// and allocates nothing: it may be in a signal handler that interrupted malloc(), or hold any lock.
#pragma once

#include <chrono>
#include <ctime>
#include <memory>
#include <mutex>
#include <vector>

#include "core/clock.h"
#include "transport/comms/nic.h"

namespace ztcp::comms {

// The part of a poller's thread: tells the peers and waits until `ends` at most.
void say_last_words(Poller& poller, TimePoint ends);

// Other threads may be anywhere: stopped in the middle of a turn, or here in this very call stack
// when a signal handler calls exit(). So every wait ends after `timeout`. `mutex` guards `nics`;
// null entries are NICs of other processes.
template <class AnyNic>
void drain(const std::vector<std::shared_ptr<AnyNic>>& nics, std::mutex& mutex, Duration timeout) {
  constexpr timespec kPause{.tv_sec = 0, .tv_nsec = 100'000};
  // Extra time for the last turn of a thread that used the whole timeout.
  constexpr Duration kLastTurn = std::chrono::milliseconds(100);
  const TimePoint ends = Poller::read_clock() + timeout;
  std::unique_lock lock(mutex, std::defer_lock);
  while (!lock.try_lock()) {
    if (Poller::read_clock() >= ends) return;
    nanosleep(&kPause, nullptr);
  }
  const auto for_each = [&](auto&& visit) {
    for (const auto& nic : nics) {
      if (nic == nullptr || nic->lost_poller() != nullptr) continue;
      for (const auto& poller : nic->pollers) visit(*poller);
    }
  };
  for_each([&](Poller& poller) { poller.end_process(ends); });
  for_each([&](const Poller& poller) {
    while (!poller.has_ended_process() && Poller::read_clock() < ends + kLastTurn)
      nanosleep(&kPause, nullptr);
  });
}

}  // namespace ztcp::comms
