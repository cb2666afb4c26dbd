// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/dctcp.h"

#include <algorithm>

namespace ztcp::tcp {
namespace {

// A window below a segment still fills a packet of some size, whose cost is worth its bytes.
std::uint32_t least_window(std::uint32_t mss_bytes) {
  constexpr std::uint32_t kLeastBytes = 700;
  return std::min(std::max(mss_bytes / 8, kLeastBytes), mss_bytes);
}

// Bytes more in a round trip: a segment for windows of eight, an eighth of smaller ones, and the
// same for all windows below half a segment, so that these become equal.
double growth(const CongestionControl::Window& window) {
  const double least = least_window(window.mss_bytes) / 2.0;
  return std::clamp(window.cwnd_bytes / 8.0, least, static_cast<double>(window.mss_bytes));
}

}  // namespace

void Dctcp::begin(Window& window) {
  constexpr std::uint32_t kBytes = 14600;  // RFC 6928 section 2.
  window.cwnd_bytes = std::min(window.cwnd_bytes, std::max(2 * window.mss_bytes, kBytes));
}

void Dctcp::on_restart(TimePoint now, Window& window) {
  if (now - last_ack_ > srtt_)
    window.cwnd_bytes = std::min(window.cwnd_bytes, window.ssthresh_bytes);
}

void Dctcp::on_ack(TimePoint now, const Ack& ack, Window& window) {
  last_ack_ = now;
  srtt_ = ack.srtt;
  acked_bytes_ += ack.acked_bytes;
  ce_bytes_ += ack.ce_bytes;
  if (!ack.ack.before(round_end_) && acked_bytes_ > 0) {
    const double share =
        std::min(static_cast<double>(ce_bytes_) / static_cast<double>(acked_bytes_), 1.0);
    alpha_ += kGain * (share - alpha_);
    acked_bytes_ = ce_bytes_ = 0;
    round_end_ = ack.snd_nxt;
  }
  // RFC 3168 section 6.1.2: marked bytes do not grow the window.
  const std::uint32_t clean = ack.acked_bytes - std::min(ack.acked_bytes, ack.ce_bytes);
  if (!ack.window_limited || clean == 0) return;
  if (window.in_slow_start()) {
    window.cwnd_bytes = std::min(window.cwnd_bytes + clean, window.ssthresh_bytes);
    return;
  }
  const double more = growth(window) * clean / window.cwnd_bytes;
  window.cwnd_bytes =
      static_cast<std::uint32_t>(std::min<double>(window.cwnd_bytes + more, Window::kMaxBytes));
}

// Section 3.4: losses halve the window, as any other control's.
std::uint32_t Dctcp::on_loss(const Window& window) {
  return std::max(window.cwnd_bytes / 2, least_window(window.mss_bytes));
}

std::uint32_t Dctcp::on_mark(const Window& window) {
  const auto less = static_cast<std::uint32_t>(window.cwnd_bytes * alpha_ / 2);
  return std::max(window.cwnd_bytes - less, least_window(window.mss_bytes));
}

}  // namespace ztcp::tcp
