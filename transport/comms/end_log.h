// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Logs those of a NIC's connections that end by a failure or an abort. A dying job ends hundreds at
// once, and an operator needs the cause of the first. So the first line is written in full, as are
// a few more for other peers or other errors; the rest are counted, and one line with their number
// and the beginning of the first cause follows when the NIC's last connection is closed.
//
// Any thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "core/address.h"
#include "core/log.h"
#include "core/result.h"

namespace ztcp::comms {

class EndLog {
 public:
  explicit EndLog(std::string nic) : nic_(std::move(nic)) {}

  void opened();
  void closed();
  // `line`: the text for an operator, which begins with the connection's peer.
  void failed(IpAddress peer, Errc code, const std::string& line);
  // NCCL took back memory with bytes in flight, as an abort (Ctrl-C, say) does on each connection:
  // no fault, so a line for information, and only a count after another cause.
  void cut(const std::string& line);

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kSaidInFull = 4;
  // A connection that ends later than this after the previous one has a cause of its own.
  static constexpr auto kQuiet = std::chrono::seconds(60);

  // Lines are written without the mutex: a logger that blocks must not stop other threads.
  struct Line {
    log::Level level;
    std::string text;
  };
  using Lines = std::vector<Line>;
  void begin(Clock::time_point now, Lines& lines);
  void say(log::Level level, const std::string& line, Lines& lines);
  void sum_up(Lines& lines);
  void speak(const Lines& lines) const;

  const std::string nic_;
  std::mutex mutex_;
  std::size_t open_ = 0;
  Clock::time_point last_{};
  std::string first_;  // The first line; empty: no connection has failed or was cut.
  std::vector<std::pair<IpAddress, Errc>> said_;
  std::size_t failed_more_ = 0;
  std::size_t cut_more_ = 0;
};

}  // namespace ztcp::comms
