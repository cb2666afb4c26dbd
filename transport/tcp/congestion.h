// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The congestion window: slow start with HyStart++, CUBIC, PRR during fast recovery, and taking a
// reduction back when it proved spurious (RFC 4015). Knows bytes and time, not segments on the
// wire. Owned by a Sender.
//
// The window is not reset after idle time (RFC 5681 section 4.1 would): training is bursts between
// computing, and pacing spreads the first of each.
#pragma once

#include <algorithm>
#include <cstdint>

#include "transport/core/clock.h"
#include "transport/tcp/cubic.h"
#include "transport/tcp/hystart.h"
#include "transport/tcp/prr.h"
#include "transport/tcp/seq_num.h"

namespace ztcp::tcp {

class Congestion {
 public:
  static constexpr std::uint32_t kMaxWindowBytes = 1U << 30;

  void begin(std::uint32_t mss_bytes, std::uint32_t initial_segments, SeqNum snd_nxt) {
    mss_bytes_ = mss_bytes;
    cwnd_bytes_ = mss_bytes * initial_segments;
    ssthresh_bytes_ = kMaxWindowBytes;
    cubic_.reset();
    hystart_.begin(snd_nxt);
  }

  std::uint32_t window_bytes() const { return cwnd_bytes_; }
  std::uint32_t ssthresh_bytes() const { return ssthresh_bytes_; }
  bool in_slow_start() const { return cwnd_bytes_ < ssthresh_bytes_; }

  struct Ack {
    SeqNum ack;
    SeqNum snd_nxt;
    std::uint32_t acked_bytes = 0;
    bool window_limited = false;  // The window held data back since the last ACK.
    Duration rtt_sample{};        // Zero: this ACK gave none.
    Duration srtt{};
  };
  // Nothing was in flight, and sending begins again: the pause does not count.
  void on_restart(TimePoint now) { cubic_.on_idle(now); }

  // An ACK outside fast recovery.
  void on_ack(TimePoint now, const Ack& ack);

  // Fast recovery (RFC 6937): begin, one call per ACK and per transmission, end.
  void enter_recovery(std::uint32_t flight_bytes);
  void on_recovery_ack(std::uint32_t delivered_bytes, bool made_progress,
                       std::uint32_t pipe_bytes) {
    cwnd_bytes_ =
        prr_.on_ack(delivered_bytes, made_progress, pipe_bytes, ssthresh_bytes_, mss_bytes_);
  }
  void on_recovery_sent(std::uint32_t bytes) { prr_.on_sent(bytes); }
  void leave_recovery() { cwnd_bytes_ = ssthresh_bytes_; }

  // RFC 5681 section 3.1, equation (4): the losses of one window of data move ssthresh once, and
  // `first` says that nothing has done so yet. One segment may leave beside the `flight_bytes` that
  // are not yet overdue (RFC 8985 section 6.3).
  void on_timeout(bool first, SeqNum snd_nxt, std::uint32_t flight_bytes);

  // A loss that needed no recovery: the tail loss probe repaired it (RFC 8985 section 7.4.2).
  void on_repaired_loss();

  // RFC 4015 section 3.2: as if the latest enter_recovery() or first on_timeout() had not been.
  void undo();
  // The loss that recovery repairs has proved real: undo() goes back to its end.
  void keep_reduction() {
    leave_recovery();
    save();
  }

  // The path takes less per packet: the window keeps its bytes.
  void set_mss(std::uint32_t mss_bytes) { mss_bytes_ = mss_bytes; }

 private:
  void reduce();
  void save();

  std::uint32_t mss_bytes_ = 1460;
  std::uint32_t cwnd_bytes_ = 0;
  std::uint32_t ssthresh_bytes_ = kMaxWindowBytes;
  std::uint32_t saved_cwnd_bytes_ = 0;
  std::uint32_t saved_ssthresh_bytes_ = 0;
  HyStart hystart_;
  Cubic cubic_;
  Cubic saved_cubic_;
  Prr prr_;
};

}  // namespace ztcp::tcp
