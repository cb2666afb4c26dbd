// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Runs a probe over agents: compares the hosts, then measures all pairs in rounds.
#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "tools/ztcp_perf/probe/agents.h"
#include "tools/ztcp_perf/probe/options.h"
#include "tools/ztcp_perf/probe/results.h"
#include "tools/ztcp_perf/probe/schedule.h"

namespace ztcp::perf::probe {

inline Agents::Clock::duration seconds(double value) {
  return std::chrono::duration_cast<Agents::Clock::duration>(std::chrono::duration<double>(value));
}

class Coordinator {
 public:
  using Clock = Agents::Clock;

  // `agents` must outlive it. Hosts with a failure have no agent.
  Coordinator(const ProbeOptions& options, Agents& agents, std::vector<Host> hosts);

  // Greets all hosts and takes their facts and clocks. With `is_greeted` they have sent their first
  // line already. A host without an answer gets a failure.
  void meet(bool is_greeted);
  // Number of hosts that can be measured.
  std::size_t ready() const;
  // Every pair of those.
  void measure();
  Results take_results();

 private:
  // A host's progress in meet().
  struct Greeting {
    bool is_greeted = false;
    int clocks = 0;  // Answers so far.
    bool is_done = false;
    std::int64_t asked_ns = 0;
  };
  // A pair under measurement, one rail after the other.
  struct Task {
    enum class Step : std::uint8_t { kListen, kMeasure };
    Pair pair;
    std::size_t rail = 0;
    Step step = Step::kListen;
    Clock::time_point deadline;
    struct End {
      bool has_answered = false;
      std::string error;
      std::optional<Json> answer;  // With has_answered, unless the host was lost.
    };
    End ends[2];
    bool is_lost = false;  // One of the hosts is gone.
  };

  void greet(std::size_t host, Greeting& greeting, const Json& line);
  void ask_next(std::size_t host, Greeting& greeting);
  void give_up(std::size_t host, std::string reason);

  void run_round(const std::vector<Pair>& pairs);
  void begin(Task& task);
  // False: the pair is finished.
  bool advance(Task& task);
  void answer(Task& task, std::size_t host, const Agents::Event& event);
  void expire(Task& task);
  std::string with_last_words(std::size_t host, std::string text);
  void record(const Task& task);
  int device_of(std::size_t host, std::size_t rail) const;
  std::size_t rails_of(const Pair& pair) const;

  const ProbeOptions& options_;
  Agents& agents_;
  Results results_;
  Clock::time_point began_;
};

}  // namespace ztcp::perf::probe
