// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How long messages with each peer took, by communicator: for one log line at the communicator's
// end, which names the slowest peers. Connections add their sums when NCCL closes them; the plugin
// takes them when NCCL ends the communicator.
#pragma once

#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <span>
#include <string>
#include <vector>

#include "transport/stats/snapshot.h"

namespace ztcp::stats {

struct PeerTime {
  std::string peer;  // "gpu-07 (10.0.0.7)", or its address.
  Way way = Way::kSend;
  std::uint64_t messages = 0;  // With a measured time.
  std::uint64_t total_ns = 0;
};

// Any thread. Communicators without a number are not kept, nor those beyond kMost: the
// plugin may never see the end of some.
class CommunicatorTimes {
 public:
  static constexpr std::size_t kMost = 64;

  void add(std::uint64_t communicator, const PeerTime& time);
  // Removes them. Connections with the same peer are summed up.
  std::vector<PeerTime> take(std::uint64_t communicator);

 private:
  std::mutex mutex_;
  std::map<std::uint64_t, std::vector<PeerTime>> times_;
};

// Those of this process.
CommunicatorTimes& communicator_times();

// "receives from gpu-07 (10.0.0.7) took 3.200 ms, 2.100 ms longer than the median of 7 peers; ...":
// the peers whose messages took twice the median or more, the slowest first, at most three. Empty:
// there is none, or too few peers or messages to compare.
std::string straggler_text(std::span<const PeerTime> times);

}  // namespace ztcp::stats
