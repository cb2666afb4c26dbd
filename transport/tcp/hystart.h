// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// HyStart++ (RFC 9406): leaves slow start when the round trip grows, before the queue overflows.
// Owned by a Cubic.
//
// We depart in two numbers. MIN_RTT_THRESH is 4 ms in section 4.3, a hundred round trips here,
// which would never trigger inside a building: it is the time that 64 KiB take at the rate reached,
// since a fixed time is a queue that grows with the line's speed (250 us are 3 MB at 100 Gb/s). And
// N_RTT_SAMPLE counts on an ACK for each packet or two; peers that acknowledge once per burst, ours
// among them, give fewer than eight in a round for as long as slow start lasts. Such a round is
// judged when it ends, by what it had, and must have grown twice as much when that was a single
// sample. What jitter lets in here costs a round or two of slower growth: conservative slow start
// ends with the first sample below its baseline.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "transport/core/clock.h"
#include "transport/tcp/seq_num.h"

namespace ztcp::tcp {

class HyStart {
 public:
  // MIN_RTT_THRESH lies between: what pollers' turns let round trips vary by, and what suffices
  // where lines are slow.
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

  // A window per round trip is the rate.
  static Duration min_rtt_thresh(Duration srtt, std::uint32_t window_bytes) {
    const auto queue_time = srtt.count() * kQueueBytes / std::max<std::uint32_t>(window_bytes, 1);
    return std::clamp(Duration(queue_time), kLeastMinRttThresh, kMostMinRttThresh);
  }

  // An ACK in slow start: section 4.2. Returns by how many bytes the window may grow.
  std::uint32_t on_ack(SeqNum ack, SeqNum snd_nxt, std::uint32_t acked_bytes, Duration rtt,
                       Duration min_rtt_thresh) {
    min_rtt_thresh_ = min_rtt_thresh;
    // First: one ACK may be all that a round has.
    if (rtt > Duration::zero()) on_rtt(rtt);
    // Nothing was told here while the user was the limit: the numbers may have gone half round.
    if (window_end_.at_or_before(ack) || window_end_.after(snd_nxt)) start_round(snd_nxt);
    return in_css_ ? acked_bytes / kCssGrowthDivisor : acked_bytes;
  }

  // Section 4.2: conservative slow start ran its rounds; congestion avoidance is next.
  bool is_done() const { return done_; }
  bool in_css() const { return in_css_; }

 private:
  void start_round(SeqNum snd_nxt) {
    if (in_css_ && ++css_rounds_ >= kCssRounds) done_ = true;
    if (!in_css_ && samples_ < kRttSamples) look_for_growth();
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
      look_for_growth();
    }
  }

  void look_for_growth() {
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
