// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Bbr's memory of the path: the largest bandwidth, the smallest round trip, the burst size of
// ACKs, and the loss that does not come from congestion.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdint>

#include "core/clock.h"

namespace ztcp::tcp {

// The largest value of the present span and of the one before (MaxBwFilterLen = 2 cycles).
template <class Value>
class MaxOfTwo {
 public:
  void add(Value value) { values_[0] = std::max(values_[0], value); }
  void advance() {
    values_[1] = values_[0];
    values_[0] = {};
  }
  Value get() const { return std::max(values_[0], values_[1]); }

 private:
  std::array<Value, 2> values_{};
};

// Section 5.3.4.3: the smallest round trip of 10 s; the smallest of 5 s decides when to probe for
// a smaller one.
class MinRttFilter {
 public:
  static constexpr Duration kProbeInterval = std::chrono::seconds(5);
  static constexpr Duration kFilterLength = std::chrono::seconds(10);

  // Returns whether no sample has refreshed the shorter filter for its whole length.
  bool on_sample(TimePoint now, Duration rtt) {
    const bool expired = now > recent_since_ + kProbeInterval && recent_ != kUnknown;
    if (rtt > Duration::zero() && (rtt < recent_ || expired)) {
      recent_ = rtt;
      recent_since_ = now;
    }
    if (recent_ < min_ || now > min_since_ + kFilterLength) {
      min_ = recent_;
      min_since_ = recent_since_;
    }
    return expired;
  }
  // The probe is over.
  void refresh(TimePoint now) { recent_since_ = now; }

  bool is_known() const { return min_ != kUnknown; }
  Duration get() const { return min_; }

 private:
  static constexpr Duration kUnknown = Duration::max();
  Duration recent_ = kUnknown;
  TimePoint recent_since_{};
  Duration min_ = kUnknown;
  TimePoint min_since_{};
};

// Loss on the path that is there without a queue: a bad cable, a radio link. Learnt while less than
// the bandwidth is sent, and only from round trips near the smallest. The loss bound counts from
// here, where the draft's counts from zero.
class LossFloor {
 public:
  static constexpr double kBound = 0.02;  // LossThresh.
  static constexpr double kFirstBound = 0.2;

  // One round without probing. `queued`: its round trips were longer than the path's.
  void on_round(std::uint64_t delivered_bytes, std::uint64_t lost_bytes, bool queued,
                std::uint32_t mss_bytes) {
    delivered_bytes_ += delivered_bytes;
    lost_bytes_ += lost_bytes;
    queued_ |= queued;
    if (delivered_bytes_ + lost_bytes_ < std::uint64_t{kBatchSegments} * mss_bytes) return;
    const auto share = static_cast<float>(static_cast<double>(lost_bytes_) /
                                          static_cast<double>(delivered_bytes_ + lost_bytes_));
    if (batches_ < 2) ++batches_;
    before_ = queued_ ? 0 : latest_;
    latest_ = queued_ ? 0 : share;
    delivered_bytes_ = lost_bytes_ = 0;
    queued_ = false;
  }

  double share() const { return before_ == 0 ? 0 : (before_ + latest_) / 2; }

  // Whether `lost_bytes` are more than the bound on `sent_bytes`, and the floor and chance on
  // `exposed_bytes`, explain. Until the floor is known, loss without a queue has a higher bound.
  bool is_exceeded(std::uint64_t lost_bytes, std::uint64_t sent_bytes, std::uint64_t exposed_bytes,
                   bool queued, std::uint32_t mss_bytes) const {
    if (lost_bytes == 0) return false;
    const double lost = static_cast<double>(lost_bytes) / mss_bytes;
    const double bound = batches_ < 2 && !queued ? kFirstBound : kBound;
    const double sent = static_cast<double>(sent_bytes) / mss_bytes;
    const double floor = share() * static_cast<double>(exposed_bytes) / mss_bytes;
    return lost > bound * sent + floor + 3 * std::sqrt(floor);
  }

 private:
  static constexpr std::uint32_t kBatchSegments = 256;
  std::uint64_t delivered_bytes_ = 0;
  std::uint64_t lost_bytes_ = 0;
  float before_ = 0;
  float latest_ = 0;
  int batches_ = 0;
  bool queued_ = false;
};

// Section 5.5.9: how many bytes more than the bandwidth explains ACKs deliver at a time. Such
// bursts need a larger window, or sending stops between them.
class AckBursts {
 public:
  void on_ack(TimePoint now, std::uint32_t delivered_bytes, double bandwidth,
              std::uint32_t window_bytes) {
    const double expected = bandwidth * std::chrono::duration<double>(now - since_).count();
    if (static_cast<double>(bytes_) <= expected) {
      bytes_ = 0;
      since_ = now;
      bytes_ += delivered_bytes;
      extra_.add(std::min(delivered_bytes, window_bytes));
      return;
    }
    bytes_ += delivered_bytes;
    const double extra = static_cast<double>(bytes_) - expected;
    extra_.add(static_cast<std::uint32_t>(std::min(extra, static_cast<double>(window_bytes))));
  }
  void on_round() {
    if (++rounds_ < kRounds) return;
    rounds_ = 0;
    extra_.advance();
  }
  std::uint32_t bytes() const { return extra_.get(); }

 private:
  static constexpr int kRounds = 5;  // Two spans: the draft's ten rounds.
  TimePoint since_{};
  std::uint64_t bytes_ = 0;
  MaxOfTwo<std::uint32_t> extra_;
  int rounds_ = 0;
};

}  // namespace ztcp::tcp
