// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The terminal of the live view, by ANSI escape sequences: raw keys and the alternate screen, given
// back at the end of the object and when a signal ends the process.
#pragma once

#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace ztcp::stat {

// SIGINT, SIGTERM and SIGHUP set a flag: a view that is being written is completed first. The
// second signal ends the process at once.
void catch_end_signals();
bool has_end_signal();
// Ends the process as the caught signal would have; returns if there was none.
void end_by_signal();
// Sleeps, shorter when a signal arrives.
void sleep_for(std::chrono::nanoseconds time);

// stdout is a terminal that understands escape sequences.
bool is_terminal();
// The same, and NO_COLOR is not set.
bool may_colour();
// The locale's characters are UTF-8.
bool is_utf8();

struct TerminalSize {
  std::size_t width = 80;
  std::size_t height = 24;
};

class Terminal {
 public:
  Terminal();
  ~Terminal();
  Terminal(const Terminal&) = delete;
  Terminal& operator=(const Terminal&) = delete;

  TerminalSize size() const;
  // Replaces the screen's content. False: the terminal is gone.
  bool show(const std::vector<std::string>& lines);
  // Waits for keys; empty when the time is over or a signal arrived. `is_gone`: so is the terminal.
  std::string read_keys(std::chrono::nanoseconds wait, bool& is_gone);
};

// Writes a view to stdout at once. Exit status of a failure; 0: go on. A reader that has gone
// (EPIPE) ends the process quietly with 0.
int write_view(std::string_view text);

}  // namespace ztcp::stat
