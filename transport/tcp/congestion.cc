// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/congestion.h"

namespace ztcp::tcp {

void Congestion::on_ack(TimePoint now, const Ack& ack) {
  if (!ack.window_limited) {
    cubic_.on_idle(now);
    return;
  }
  if (in_slow_start()) {
    // RFC 9406 section 4.2: the first slow start only. Later ones know where to end.
    const bool first = ssthresh_bytes_ == kMaxWindowBytes;
    const std::uint32_t growth =
        first ? hystart_.on_ack(ack.ack, ack.snd_nxt, ack.acked_bytes, ack.rtt_sample)
              : ack.acked_bytes;
    cwnd_bytes_ = std::min(cwnd_bytes_ + growth, ssthresh_bytes_);
    if (first && hystart_.is_done()) ssthresh_bytes_ = cwnd_bytes_;
    return;
  }
  const double mss = mss_bytes_;
  const double grown = cubic_.on_ack(now, ack.srtt, cwnd_bytes_ / mss, ack.acked_bytes / mss);
  cwnd_bytes_ = static_cast<std::uint32_t>(std::min(grown * mss, double{kMaxWindowBytes}));
}

void Congestion::save() {
  saved_cwnd_bytes_ = cwnd_bytes_;
  saved_ssthresh_bytes_ = ssthresh_bytes_;
  saved_cubic_ = cubic_;
}

void Congestion::reduce() {
  const double mss = mss_bytes_;
  ssthresh_bytes_ = static_cast<std::uint32_t>(cubic_.on_congestion(cwnd_bytes_ / mss) * mss);
}

void Congestion::enter_recovery(std::uint32_t flight_bytes) {
  save();
  reduce();
  prr_.begin(flight_bytes);
}

void Congestion::on_timeout(bool first, SeqNum snd_nxt, std::uint32_t flight_bytes) {
  if (first) {
    save();
    reduce();
  }
  cubic_.on_timeout();
  cwnd_bytes_ = flight_bytes + mss_bytes_;
  hystart_.begin(snd_nxt);
}

void Congestion::on_repaired_loss() {
  reduce();
  cwnd_bytes_ = ssthresh_bytes_;
}

void Congestion::undo() {
  cwnd_bytes_ = std::max(cwnd_bytes_, saved_cwnd_bytes_);
  ssthresh_bytes_ = saved_ssthresh_bytes_;
  cubic_ = saved_cubic_;
}

}  // namespace ztcp::tcp
