// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/swift.h"

#include <algorithm>
#include <cmath>

namespace ztcp::tcp {

// Flow scaling: alpha / sqrt(window) + beta, zero for kMostScaledSegments and most for one.
Duration Swift::target(Duration min_rtt, double segments) {
  const double window = std::clamp(segments, kLeastScaledSegments, kMostScaledSegments);
  const double least = 1 / std::sqrt(kMostScaledSegments);
  const double most = 1 / std::sqrt(kLeastScaledSegments);
  const double share = (1 / std::sqrt(window) - least) / (most - least);
  const auto scaling =
      static_cast<Duration::rep>(share * static_cast<double>(kMostFlowScaling.count()));
  return kBase + min_rtt / kPathDivisor + Duration(scaling);
}

void Swift::on_ack(TimePoint now, const Ack& ack, Window& window) {
  const double mss = window.mss_bytes;
  const double cwnd = window.cwnd_bytes;
  const Duration excess = ack.rtt_sample - ack.min_rtt;
  const Duration limit = target(ack.min_rtt, cwnd / mss);
  if (ack.rtt_sample > Duration::zero() && excess > limit) {
    if (now - decreased_ < ack.srtt) return;
    decreased_ = now;
    const double over = static_cast<double>((excess - limit).count()) /
                        static_cast<double>(std::max(ack.rtt_sample, Duration(1)).count());
    const double factor = std::max(1 - kBeta * over, kMostDecrease);
    window.cwnd_bytes = static_cast<std::uint32_t>(std::max(cwnd * factor, mss));
    window.ssthresh_bytes = window.cwnd_bytes;  // Slow start is over.
    return;
  }
  if (!ack.window_limited) return;
  const double growth =
      window.in_slow_start() ? ack.acked_bytes : mss * ack.acked_bytes / std::max(cwnd, mss);
  window.cwnd_bytes =
      static_cast<std::uint32_t>(std::min(cwnd + growth, double{Window::kMaxBytes}));
}

std::uint32_t Swift::on_loss(const Window& window) {
  return std::max(static_cast<std::uint32_t>(window.cwnd_bytes * (1 - kMostDecrease)),
                  window.mss_bytes);
}

}  // namespace ztcp::tcp
