// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Runs a Plan once, as NCCL's proxy progress thread does: up to 8 steps in flight per connection,
// receives posted ahead, a NULL request retried, only the oldest request tested, a yield between
// rounds without progress.
#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <vector>

#include "core/yielder.h"
#include "tools/ztcp_perf/bootstrap.h"
#include "tools/ztcp_perf/collective.h"
#include "tools/ztcp_perf/connections.h"
#include "tools/ztcp_perf/plan.h"
#include "tools/ztcp_perf/plugin_table.h"

namespace ztcp::perf {

class Exchange {
 public:
  Exchange(Net& net, Connections& connections, Bootstrap& bootstrap, const Options& options);

  // run() gives it the plans that the plugin's CollNet carries out.
  void use(Collective& collective) { collective_ = &collective; }
  // Returns when every message of this rank has been sent and received.
  void run(const Plan& plan);

 private:
  // Counts steps, and for the next step its messages. A receive takes all of its step in one
  // request.
  struct Progress {
    std::uint64_t posted = 0;
    std::uint64_t done = 0;
    std::size_t parts_posted = 0;
    std::size_t parts_done = 0;
    std::array<std::array<void*, kMaxParts>, kStepsInFlight> requests{};
  };

  bool advance_receive(const ReceiveLane& plan, Lane& lane, Progress& progress);
  bool advance_send(const SendLane& plan, Lane& lane, Progress& progress);
  bool post_receive(const ReceiveStep& step, Lane& lane, Progress& progress);
  bool post_send(const SendStep& step, Lane& lane, Progress& progress);
  void finish_receive(const ReceiveStep& step, Lane& lane, std::uint64_t index, const int* sizes);
  // Each rank's messages have their own tags, as if ranks shared the connection.
  int tag_of(int sender, std::size_t part) const {
    return sender + static_cast<int>(part) * bootstrap_.size();
  }
  std::byte* receive_place(const ReceiveStep& step, Lane& lane, std::uint64_t index);
  void run_collective(const Plan& plan);
  void idle(const Plan& plan);
  [[noreturn]] void stalled(const Plan& plan);

  Net& net_;
  Connections& connections_;
  Collective* collective_ = nullptr;
  Bootstrap& bootstrap_;
  const std::size_t parts_;  // Messages per step.
  std::chrono::duration<double> stall_timeout_;
  std::vector<Progress> sends_;
  std::vector<Progress> receives_;
  Yielder yielder_;
  std::uint32_t idle_rounds_ = 0;
  std::chrono::steady_clock::time_point idle_since_;
  std::chrono::steady_clock::time_point next_check_;
};

}  // namespace ztcp::perf
