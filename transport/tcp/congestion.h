// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The congestion window of a connection: the result of its algorithm (congestion_control.h), PRR
// during fast recovery, and undoing a reduction that proved spurious (RFC 4015). Knows bytes and
// time, not segments on the wire. Owned by a Sender.
//
// The window is not reset after idle time (RFC 5681 section 4.1 would): training sends bursts
// between computing, and pacing spreads the start of each.
#pragma once

#include <cstdint>

#include "core/clock.h"
#include "transport/tcp/congestion_control.h"
#include "transport/tcp/prr.h"
#include "transport/tcp/seq_num.h"

namespace ztcp::tcp {

class Congestion {
 public:
  Congestion() = default;
  Congestion(const Congestion&) = delete;  // The algorithm is a member.
  Congestion& operator=(const Congestion&) = delete;

  void begin(MakeCongestionControl make, std::uint32_t mss_bytes, std::uint32_t initial_segments,
             SeqNum first);

  std::uint32_t window_bytes() const { return window_.cwnd_bytes; }
  std::uint32_t ssthresh_bytes() const { return window_.ssthresh_bytes; }
  bool in_slow_start() const { return window_.in_slow_start(); }
  std::uint64_t pacing_rate(Duration srtt) const { return algorithm_->pacing_rate(window_, srtt); }
  bool is_rate_based() const { return window_.rate_based; }
  std::uint8_t changes() const { return window_.changes; }
  const char* name() const { return algorithm_ == nullptr ? "" : algorithm_->name(); }

  // Sending resumes after nothing was in flight.
  void on_restart(TimePoint now) {
    resumed_ = now;
    algorithm_->on_restart(now, window_);
  }

  // An ACK outside fast recovery, or any for a rate-based algorithm; `ack.resumed` is filled in
  // here.
  void on_ack(TimePoint now, CongestionControl::Ack& ack) {
    ack.resumed = resumed_;
    algorithm_->on_ack(now, ack, window_);
  }

  // Fast recovery (RFC 6937): begin, one call per ACK and per transmission, end. A rate-based
  // algorithm sets the window itself.
  void enter_recovery(std::uint32_t flight_bytes);
  void on_recovery_ack(std::uint32_t delivered_bytes, bool made_progress,
                       std::uint32_t pipe_bytes) {
    if (window_.rate_based) return;
    window_.cwnd_bytes = prr_.on_ack(delivered_bytes, made_progress, pipe_bytes,
                                     window_.ssthresh_bytes, window_.mss_bytes);
  }
  void on_recovery_sent(std::uint32_t bytes) { prr_.on_sent(bytes); }
  void leave_recovery() {
    if (!window_.rate_based) window_.cwnd_bytes = window_.ssthresh_bytes;
  }

  // RFC 5681 section 3.1, equation (4): the losses of one window of data reduce ssthresh once, and
  // `first` says that they have not yet done so. One segment may be sent beside the `flight_bytes`
  // that are not yet overdue (RFC 8985 section 6.3).
  void on_timeout(bool first, SeqNum snd_nxt, std::uint32_t flight_bytes);

  // A loss that needed no recovery: the tail loss probe repaired it (RFC 8985 section 7.4.2).
  void on_repaired_loss();

  // Congestion marks, once per window of data.
  void on_mark() {
    const std::uint32_t ssthresh_bytes = algorithm_->on_mark(window_);
    if (!window_.rate_based) window_.cwnd_bytes = window_.ssthresh_bytes = ssthresh_bytes;
  }

  // RFC 4015 section 3.2: undoes the latest enter_recovery() or first on_timeout().
  void undo();
  // The loss that recovery repairs was real: undo() must not go back before its end.
  void keep_reduction() {
    leave_recovery();
    save();
  }

  // The path's packets became smaller: the window keeps its size in bytes.
  void set_mss(std::uint32_t mss_bytes) { window_.mss_bytes = mss_bytes; }

 private:
  void reduce() { window_.ssthresh_bytes = algorithm_->on_loss(window_); }
  void save();

  CongestionControl::Window window_;
  CongestionControl* algorithm_ = nullptr;  // In storage_, from begin() on.
  TimePoint resumed_{};
  CongestionControl::Storage storage_;

  // --- Cold.
  CongestionControl::Window saved_window_;
  Prr prr_;
};

}  // namespace ztcp::tcp
