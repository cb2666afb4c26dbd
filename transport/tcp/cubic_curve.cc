// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/cubic_curve.h"

#include <algorithm>
#include <chrono>
#include <cmath>

namespace ztcp::tcp {
namespace {

double to_seconds(Duration d) { return std::chrono::duration<double>(d).count(); }

}  // namespace

double CubicCurve::w_cubic(double seconds) const {
  const double t = seconds - k_seconds_;
  return kC * t * t * t + w_max_;
}

double CubicCurve::on_congestion(double cwnd_segments, double beta) {
  cwnd_prior_ = cwnd_segments;
  // Section 4.7, fast convergence: a shrinking window releases bandwidth to new flows.
  w_max_ = cwnd_segments < w_max_ ? cwnd_segments * (1.0 + beta) / 2.0 : cwnd_segments;
  in_epoch_ = false;
  return std::max(cwnd_segments * beta, 2.0);
}

double CubicCurve::on_ack(TimePoint now, Duration srtt, double cwnd_segments,
                          double acked_segments) {
  if (!in_epoch_) {
    in_epoch_ = true;
    epoch_start_ = now;
    w_est_ = cwnd_segments;
    if (w_max_ < cwnd_segments) w_max_ = cwnd_segments;  // Section 4.10.
    k_seconds_ = std::cbrt((w_max_ - cwnd_segments) / kC);
  }
  last_ack_ = now;
  const double t = to_seconds(now - epoch_start_);
  const double alpha = w_est_ < cwnd_prior_ ? kAlpha : 1.0;
  w_est_ += alpha * acked_segments / cwnd_segments;
  if (w_cubic(t) < w_est_) return std::max(w_est_, cwnd_segments);  // Section 4.3.
  // Section 4.2: at most half the window more in a round trip.
  const double target =
      std::clamp(w_cubic(t + to_seconds(srtt)), cwnd_segments, 1.5 * cwnd_segments);
  return cwnd_segments + (target - cwnd_segments) * acked_segments / cwnd_segments;
}

void CubicCurve::on_idle(TimePoint until) {
  if (!in_epoch_ || until <= last_ack_) return;
  epoch_start_ += until - last_ack_;
  last_ack_ = until;
}

}  // namespace ztcp::tcp
