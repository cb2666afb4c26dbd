// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// HyStart++ (RFC 9406): leaves slow start when the round trip grows, before the queue overflows.
// Owned by a Cubic.
//
// Two constants differ. MIN_RTT_THRESH is 4 ms in section 4.3, a hundred round trips here, which
// would never trigger inside a building. Here it is the time that 64 KiB take at the current rate,
// since a fixed time is a queue that grows with the line's speed (250 us are 3 MB at 100 Gb/s).
// N_RTT_SAMPLE assumes an ACK for each packet or two; peers that acknowledge once per burst, as
// ours do, give fewer than eight in a round throughout slow start. Such a round is judged at its
// end by the samples it had, and must have grown twice as much if there was a single one. A false
// alarm by jitter costs a round or two of slower growth: conservative slow start ends with the
// first sample below its baseline.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "core/clock.h"
#include "transport/tcp/seq_num.h"

namespace ztcp::tcp {

class HyStart {
 public:
  // Bounds of MIN_RTT_THRESH: the jitter from pollers' turns, and enough for slow lines.
  static constexpr Duration kLeastMinRttThresh = std::chrono::microseconds(16);
  static constexpr Duration kMostMinRttThresh = std::chrono::microseconds(250);
  static constexpr std::uint32_t kQueueBytes = 64U << 10;
  static constexpr Duration kMaxRttThresh = std::chrono::milliseconds(16);
  static constexpr std::int64_t kMinRttDivisor = 8;
  static constexpr int kRttSamples = 8;
  static constexpr std::uint32_t kCssGrowthDivisor = 4;
  static constexpr int kCssRounds = 5;

  // Slow start begins (again).
  void begin(SeqNum snd_nxt) {
    *this = HyStart{};
    window_end_ = snd_nxt;
  }

  // The rate is one window per round trip.
  static Duration min_rtt_thresh(Duration srtt, std::uint32_t window_bytes) {
    const auto queue_time = srtt.count() * kQueueBytes / std::max<std::uint32_t>(window_bytes, 1);
    return std::clamp(Duration(queue_time), kLeastMinRttThresh, kMostMinRttThresh);
  }

  // An ACK in slow start: section 4.2. Returns by how many bytes the window may grow.
  std::uint32_t on_ack(SeqNum ack, SeqNum snd_nxt, std::uint32_t acked_bytes, Duration rtt,
                       Duration min_rtt_thresh) {
    min_rtt_thresh_ = min_rtt_thresh;
    // First: a round may have a single ACK.
    if (rtt > Duration::zero()) on_rtt(rtt);
    // ACKs are not passed in while the user is the limit: the numbers may have wrapped half round.
    if (window_end_.at_or_before(ack) || window_end_.after(snd_nxt)) start_round(snd_nxt);
    return in_css_ ? acked_bytes / kCssGrowthDivisor : acked_bytes;
  }

  // Section 4.2: conservative slow start has had its rounds; congestion avoidance is next.
  bool is_done() const { return done_; }
  bool in_css() const { return in_css_; }

 private:
  void start_round(SeqNum snd_nxt) {
    if (in_css_ && ++css_rounds_ >= kCssRounds) done_ = true;
    if (!in_css_ && samples_ < kRttSamples) check_growth();
    window_end_ = snd_nxt;
    if (samples_ > 0) last_round_min_ = round_min_;
    round_min_ = Duration::max();
    samples_ = 0;
  }

  void on_rtt(Duration rtt) {
    round_min_ = std::min(round_min_, rtt);
    ++samples_;
    if (in_css_) {
      if (rtt < css_baseline_) {  // The growth was noise: back to slow start.
        in_css_ = false;
        css_baseline_ = Duration::max();
      }
    } else if (samples_ >= kRttSamples) {
      check_growth();
    }
  }

  void check_growth() {
    if (samples_ == 0 || last_round_min_ == Duration::max()) return;
    Duration growth = std::clamp(last_round_min_ / kMinRttDivisor, min_rtt_thresh_, kMaxRttThresh);
    if (samples_ == 1) growth *= 2;
    if (round_min_ < last_round_min_ + growth) return;
    css_baseline_ = round_min_;
    in_css_ = true;
    css_rounds_ = 0;
  }

  SeqNum window_end_;
  Duration min_rtt_thresh_ = kMostMinRttThresh;
  Duration last_round_min_ = Duration::max();
  Duration round_min_ = Duration::max();
  Duration css_baseline_ = Duration::max();
  int samples_ = 0;
  int css_rounds_ = 0;
  bool in_css_ = false;
  bool done_ = false;
};

}  // namespace ztcp::tcp
