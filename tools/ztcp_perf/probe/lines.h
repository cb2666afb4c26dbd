// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// An agent's requests, read by a thread of their own: a lost coordinator is noticed even while a
// call into the plugin hangs.
#pragma once

#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <string>

namespace ztcp::perf::probe {

class Lines {
 public:
  // At the end of `fd` the process has a few seconds to end, and is then ended with `exit_code`.
  // The thread is not joined: it may wait in read() for as long as the process lives.
  static Lines& start(int fd, int exit_code);

  // Whether next() would return at once.
  bool is_waiting() const;
  // The next line; absent at the end. Throws Stopped after a signal.
  std::optional<std::string> next();

 private:
  Lines() = default;
  void read_all(int fd, int exit_code);

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::string> lines_;
  bool has_ended_ = false;
};

}  // namespace ztcp::perf::probe
