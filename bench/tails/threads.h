// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The kernel scheduler's counts for each thread of this process: how long it ran, and how long it
// was runnable while another thread had its CPU.
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace ztcp::bench {

struct ThreadTimes {
  std::string name;
  double ran_ms = 0;
  double waited_ms = 0;           // Runnable, on a run queue.
  std::uint64_t slices = 0;       // Times it was given a CPU.
  std::uint64_t voluntary = 0;    // Switches: it slept.
  std::uint64_t involuntary = 0;  // Switches: it was preempted, or yielded.
};

// By thread id. A thread that ends meanwhile is left out.
using ThreadTable = std::map<int, ThreadTimes>;
ThreadTable read_threads();

// The increase from `before` to `after`, of threads that ran for 1 ms or more, summed over threads
// with names that differ only in a number ("ztcp0-q#"), as lines of text.
std::string threads_text(const ThreadTable& before, const ThreadTable& after);

}  // namespace ztcp::bench
