// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Evidence that a connection's path is congested: round trips in a row with most of their bytes
// marked (PLB, SIGCOMM 2022, section 3). Owned by a Sender. Rounds are counted when marks arrive,
// so an unmarked connection pays nothing.
//
// Where all paths are marked alike, another one is no better: each move in vain doubles the rounds
// that the next one needs.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "core/clock.h"
#include "transport/tcp/seq_num.h"

namespace ztcp::tcp {

class MarkedRounds {
 public:
  // As Linux's tcp_plb.c: with data in flight the change reorders it, so it takes longer.
  static constexpr std::uint32_t kRounds = 12;
  static constexpr std::uint32_t kRoundsIdle = 3;
  static constexpr std::uint32_t kMostDoublings = 12;
  // After a timeout the path was left for a better reason, and is not to be found again.
  static constexpr Duration kPause = std::chrono::minutes(1);

  void begin() { *this = {}; }

  struct Mark {
    SeqNum una;  // Everything below is acknowledged.
    SeqNum nxt;
    std::uint64_t acked_bytes = 0;  // In all.
    std::uint32_t newly_acked_bytes = 0;
    std::uint32_t ce_bytes = 0;
    bool is_idle = false;  // Nothing is in flight.
  };
  // An ACK reports marks. True: the path is congested, and the connection should try another one.
  bool on_mark(TimePoint now, const Mark& mark) {
    if (!is_round_open_) {
      begin_round(mark.nxt, mark.acked_bytes - mark.newly_acked_bytes);
    }
    marked_bytes_ += mark.ce_bytes;
    if (mark.una.before(round_end_)) return false;
    const bool is_congested = 2 * marked_bytes_ >= mark.acked_bytes - acked_before_;
    begin_round(mark.nxt, mark.acked_bytes);
    count(is_congested);
    const std::uint32_t needed = (mark.is_idle ? kRoundsIdle : kRounds) << doublings_;
    if (rounds_ < needed || now < paused_until_) return false;
    told_rounds_ = rounds_;
    rounds_ = 0;
    doublings_ = std::min(doublings_ + 1, kMostDoublings);
    return true;
  }
  // `random`: up to kPause, so that connections that timed out together do not end their pauses
  // together.
  void on_timeout(TimePoint now, Duration random) {
    rounds_ = 0;
    paused_until_ = now + kPause + random;
  }

  // In a row, when on_mark() was last true.
  std::uint32_t told_rounds() const { return told_rounds_; }

 private:
  void begin_round(SeqNum end, std::uint64_t acked_bytes) {
    is_round_open_ = true;
    round_end_ = end;
    acked_before_ = acked_bytes;
    marked_bytes_ = 0;
  }
  void count(bool is_congested) {
    if (is_congested) {
      ++rounds_;
      calm_rounds_ = 0;
      return;
    }
    rounds_ = 0;
    if (++calm_rounds_ == kRounds) doublings_ = 0;
  }

  bool is_round_open_ = false;
  SeqNum round_end_;
  std::uint64_t acked_before_ = 0;  // When the round began.
  std::uint64_t marked_bytes_ = 0;  // In this round.
  std::uint32_t rounds_ = 0;        // Mostly marked, in a row.
  std::uint32_t calm_rounds_ = 0;   // Others, in a row.
  std::uint32_t doublings_ = 0;
  std::uint32_t told_rounds_ = 0;
  TimePoint paused_until_ = TimePoint::min();
};

}  // namespace ztcp::tcp
