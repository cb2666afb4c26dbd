// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What is said of a NIC's connections that end otherwise than in peace. A job that dies takes
// hundreds of them along, and what ended the first is what an operator must read: so that is said
// in full, as are a few more of other peers or for other reasons; the rest are counted and told in
// one line, with the beginning of the first cause, when the NIC's last connection is closed. Any
// thread.
#pragma once

#include <chrono>
#include <cstddef>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "transport/core/address.h"
#include "transport/core/log.h"
#include "transport/core/result.h"

namespace ztcp::comms {

class EndLog {
 public:
  explicit EndLog(std::string nic) : nic_(std::move(nic)) {}

  void opened();
  void closed();
  // `line`: what an operator should know of it, beginning with the connection's peer.
  void failed(IpAddress peer, Errc code, const std::string& line);
  // NCCL took the memory of bytes in flight back: what an abort does to each (Ctrl-C is one), so it
  // is no fault, and after a first cause no news.
  void cut(const std::string& line);

 private:
  using Clock = std::chrono::steady_clock;
  static constexpr std::size_t kSaidInFull = 4;
  // What ends longer after the last has a cause of its own.
  static constexpr auto kQuiet = std::chrono::seconds(60);

  // Said without the mutex: a logger that blocks must not hold up those who have nothing to say.
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
  std::string first_;  // The first line; empty: nothing has ended.
  std::vector<std::pair<IpAddress, Errc>> said_;
  std::size_t failed_more_ = 0;
  std::size_t cut_more_ = 0;
};

}  // namespace ztcp::comms
