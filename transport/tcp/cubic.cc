// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/cubic.h"

#include <algorithm>

namespace ztcp::tcp {

void Cubic::on_ack(TimePoint now, const Ack& ack, Window& window) {
  curve_.on_idle(ack.window_limited ? ack.resumed : now);
  // RFC 3168 section 6.1.2: an ACK that reports marks does not grow the window.
  if (!ack.window_limited || ack.ce_bytes > 0) return;
  if (window.in_slow_start()) {
    // RFC 9406 section 4.2: the first slow start only. Later ones have an ssthresh.
    const bool first = window.ssthresh_bytes == Window::kMaxBytes;
    const std::uint32_t growth =
        first ? hystart_.on_ack(ack.ack, ack.snd_nxt, ack.acked_bytes, ack.rtt_sample,
                                HyStart::min_rtt_thresh(ack.srtt, window.cwnd_bytes))
              : ack.acked_bytes;
    window.cwnd_bytes = std::min(window.cwnd_bytes + growth, window.ssthresh_bytes);
    if (first && hystart_.is_done()) window.ssthresh_bytes = window.cwnd_bytes;
    return;
  }
  const double mss = window.mss_bytes;
  const double grown = curve_.on_ack(now, ack.srtt, window.cwnd_bytes / mss, ack.acked_bytes / mss);
  window.cwnd_bytes = static_cast<std::uint32_t>(std::min(grown * mss, double{Window::kMaxBytes}));
}

std::uint32_t Cubic::on_loss(const Window& window) {
  const double mss = window.mss_bytes;
  return static_cast<std::uint32_t>(curve_.on_congestion(window.cwnd_bytes / mss) * mss);
}

// RFC 8511: marks come from shallower queues than losses, so less is taken back. Not in slow start,
// which overshoots by up to a window.
std::uint32_t Cubic::on_mark(const Window& window) {
  if (window.in_slow_start()) return on_loss(window);
  const double mss = window.mss_bytes;
  return static_cast<std::uint32_t>(
      curve_.on_congestion(window.cwnd_bytes / mss, CubicCurve::kBetaOfMarks) * mss);
}

void Cubic::on_timeout(SeqNum snd_nxt) {
  curve_.on_timeout();
  hystart_.begin(snd_nxt);
}

}  // namespace ztcp::tcp
