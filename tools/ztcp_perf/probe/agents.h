// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The coordinator's side of all agents: processes it started (ssh) or connections, read together.
#pragma once

#include <chrono>
#include <cstddef>
#include <deque>
#include <optional>
#include <string>
#include <sys/types.h>
#include <utility>
#include <vector>

#include "tools/ztcp_perf/probe/messages.h"

namespace ztcp::perf::probe {

class Agents {
 public:
  using Clock = std::chrono::steady_clock;

  // A line of an agent, or its loss.
  struct Event {
    std::size_t host = 0;
    std::optional<Json> line;
    std::string loss;  // Without a line: the reason.
  };

  explicit Agents(std::size_t hosts) : channels_(hosts) {}
  // Ends all agents: those that do not end by themselves within a second are killed.
  ~Agents();
  Agents(const Agents&) = delete;
  Agents& operator=(const Agents&) = delete;

  // Starts a process with the agent's lines as its standard input and output.
  void start(std::size_t host, std::vector<std::string> command);
  // Takes over a connection.
  void attach(std::size_t host, int fd);

  // A line that can't be written shows as a loss later.
  void send(std::size_t host, const Json& json);
  // Absent: nothing came until then. Throws Stopped after a signal.
  std::optional<Event> wait(Clock::time_point until);
  // The last line that an agent wrote elsewhere than to us, once; empty: none.
  std::string take_last_words(std::size_t host) {
    return std::exchange(channels_[host].last_words, {});
  }
  // Ends one agent, without an event.
  void drop(std::size_t host);

 private:
  struct Channel {
    int in = -1;
    int out = -1;
    int errors = -1;
    pid_t pid = -1;
    std::string inbox;
    std::string error_inbox;
    std::string
        last_words;  // Last line on its standard error, or on its output before a line of ours.
    bool is_open() const { return out >= 0; }
  };

  void read_lines(std::size_t host);
  void read_errors(Channel& channel);
  void lose(std::size_t host, const std::string& reason);
  static void close_all(Channel& channel);
  static void end(Channel& channel);
  // Whether all processes have ended by then.
  bool reap(Clock::time_point until);
  void signal_all(int signal) const;

  std::vector<Channel> channels_;
  std::deque<Event> events_;
};

}  // namespace ztcp::perf::probe
