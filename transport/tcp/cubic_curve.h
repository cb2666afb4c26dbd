// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// CUBIC's window in congestion avoidance (RFC 9438). Slow start is in Cubic, the owner, and
// recovery in Congestion. Windows are in segments, as in the RFC, and fractional.
#pragma once

#include "core/clock.h"

namespace ztcp::tcp {

class CubicCurve {
 public:
  static constexpr double kBeta = 0.7;          // Section 4.6.
  static constexpr double kBetaOfMarks = 0.85;  // RFC 8511 section 3.
  static constexpr double kC = 0.4;             // Section 5.
  // Section 4.3: makes the Reno-friendly window as fast as Reno with kBeta.
  static constexpr double kAlpha = 3.0 * (1.0 - kBeta) / (1.0 + kBeta);

  // Sections 4.6 and 4.7. Returns ssthresh.
  double on_congestion(double cwnd_segments, double beta = kBeta);

  // Section 4.8: after a timeout K is 0 and W_max the window that congestion avoidance begins with.
  void on_timeout() {
    in_epoch_ = false;
    w_max_ = 0;
  }

  // An ACK of `acked_segments` in congestion avoidance while the window was the limit. Returns the
  // new window (sections 4.2 to 4.5).
  double on_ack(TimePoint now, Duration srtt, double cwnd_segments, double acked_segments);

  // The window was not the limit from the last call to `until`: that time is not counted (section
  // 4.2 and RFC 7661's concern).
  void on_idle(TimePoint until);

  double w_max() const { return w_max_; }
  double k_seconds() const { return k_seconds_; }

 private:
  double w_cubic(double seconds) const;

  double w_max_ = 0;
  double k_seconds_ = 0;
  double w_est_ = 0;
  double cwnd_prior_ = 0;
  bool in_epoch_ = false;
  TimePoint epoch_start_{};
  TimePoint last_ack_{};
};

}  // namespace ztcp::tcp
