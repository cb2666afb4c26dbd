// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/probe/lines.h"

#include <array>
#include <cerrno>
#include <thread>
#include <unistd.h>

#include "tools/ztcp_perf/interrupt.h"
#include "tools/ztcp_perf/probe/messages.h"

namespace ztcp::perf::probe {

Lines& Lines::start(int fd, int exit_code) {
  // Never destroyed: the thread outlives main().
  static Lines& lines = *new Lines;
  std::thread([fd, exit_code] { lines.read_all(fd, exit_code); }).detach();
  return lines;
}

bool Lines::is_waiting() const {
  const std::lock_guard lock(mutex_);
  return !lines_.empty() || has_ended_;
}

std::optional<std::string> Lines::next() {
  constexpr std::chrono::milliseconds kBetweenChecks{100};
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kBetweenChecks, [this] { return !lines_.empty() || has_ended_; }))
    throw_if_interrupted();
  if (lines_.empty()) return std::nullopt;
  std::string line = std::move(lines_.front());
  lines_.pop_front();
  return line;
}

void Lines::read_all(int fd, int exit_code) {
  constexpr std::chrono::seconds kTimeToEnd{3};
  std::array<char, 4096> chunk;
  std::string line;
  while (true) {
    const ssize_t size = read(fd, chunk.data(), chunk.size());
    if (size < 0 && errno == EINTR) continue;
    if (size <= 0 || line.size() > kLongestLine) break;
    for (const char c : std::string_view(chunk.data(), static_cast<std::size_t>(size))) {
      if (c != '\n') {
        line += c;
        continue;
      }
      const std::lock_guard lock(mutex_);
      lines_.push_back(std::move(line));
      line.clear();
      changed_.notify_one();
    }
  }
  {
    const std::lock_guard lock(mutex_);
    has_ended_ = true;
    changed_.notify_one();
  }
  std::this_thread::sleep_for(kTimeToEnd);
  _exit(exit_code);
}

}  // namespace ztcp::perf::probe
