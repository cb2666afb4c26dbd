// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A congestion control after BBR version 3 (draft-ietf-ccwg-bbr-02; "section" is one of it): it
// measures the path's bandwidth and its round trip without a queue, sends at that bandwidth, and
// bounds the bytes in flight by what was lost when more were. Losses as such don't slow it down.
//
// Differences from the draft: the loss bound of 2 % counts from the loss that the path has without
// a queue (LossFloor); PROBE_RTT lasts 16 round trips where that is less than its 200 ms; probing
// up ends once a quarter more than the path holds is in flight, as in version 2; no packet
// conservation in recovery.
#pragma once

#include <algorithm>
#include <cstdint>

#include "core/clock.h"
#include "transport/tcp/bbr_filters.h"
#include "transport/tcp/congestion_control.h"

namespace ztcp::tcp {

class Bbr final : public CongestionControl {
 public:
  enum class Phase : std::uint8_t { kStartup, kDrain, kDown, kCruise, kRefill, kUp, kProbeRtt };

  explicit Bbr(SeqNum first) : dice_(first.raw() | 1) {}

  void begin(Window& window) override;
  void on_ack(TimePoint now, const Ack& ack, Window& window) override;
  std::uint32_t on_loss(const Window&) override { return Window::kMaxBytes; }
  // A mark is a queue that the path tells of: this round was congested.
  std::uint32_t on_mark(const Window&) override {
    round_marked_ = true;
    return Window::kMaxBytes;
  }
  void on_timeout(SeqNum) override {}
  void save() override { saved_bounds_ = bounds_; }
  void undo() override;
  std::uint64_t pacing_rate(const Window& window, Duration srtt) const override;
  const char* name() const override { return "bbr"; }

  Phase phase() const { return phase_; }
  // Bytes per second; 0: no sample yet.
  double bandwidth() const { return std::min(max_bandwidth_.get(), bounds_.low_bandwidth); }
  Duration min_rtt() const { return min_rtt_.is_known() ? min_rtt_.get() : Duration::zero(); }
  std::uint32_t high_bytes() const { return bounds_.high_bytes; }
  std::uint32_t low_bytes() const { return bounds_.low_bytes; }
  const LossFloor& loss_floor() const { return loss_floor_; }

 private:
  static constexpr std::uint32_t kNone = Window::kMaxBytes;
  static constexpr double kNoBandwidth = 1e18;
  static constexpr double kBeta = 0.7;  // Share of a bound that is left after a congested round.

  bool is_cycling() const { return phase_ >= Phase::kDown && phase_ <= Phase::kUp; }
  bool is_probing() const {
    return phase_ == Phase::kStartup || phase_ == Phase::kRefill || phase_ == Phase::kUp;
  }
  // A round trip that is longer than the path's.
  bool is_queued(Duration rtt) const;
  double pacing_gain() const;
  std::uint32_t bdp_bytes(double gain) const;
  std::uint32_t high_less_headroom(std::uint32_t mss_bytes) const;
  std::uint32_t random_below(std::uint32_t bound);

  // The steps of on_ack(), in order.
  void count_round(const Ack& ack, const Window& window);
  void end_round(const Window& window);
  void measure(TimePoint now, const Ack& ack, const Window& window);
  void check_startup(const Ack& ack);
  void move_cycle(TimePoint now, const Ack& ack, const Window& window);
  void check_min_rtt(TimePoint now, const Ack& ack, const Window& window);
  void set_window(const Ack& ack, Window& window);

  // bbr_cycle.cc
  void adapt_high(TimePoint now, const Ack& ack, const Window& window);
  void raise_high(const Ack& ack, const Window& window);
  bool is_time_to_probe(TimePoint now, const Window& window) const;
  void start_round() { round_end_bytes_ = delivered_bytes_; }
  void start_down(TimePoint now);
  void start_refill();
  void start_up(TimePoint now);
  void count_up_round();

  struct Bounds {
    std::uint32_t high_bytes = kNone;     // inflight_longterm
    std::uint32_t low_bytes = kNone;      // inflight_shortterm
    double low_bandwidth = kNoBandwidth;  // bw_shortterm
  };

  Phase phase_ = Phase::kStartup;
  bool round_started_ = false;  // By this ACK.
  bool pipe_full_ = false;      // Startup has found the bandwidth.
  bool idle_restart_ = false;
  bool probe_samples_ = false;  // The samples tell of probing: the bound applies.
  // Most in flight of the probe whose losses are still being found: they are of so much.
  std::uint32_t probe_flight_bytes_ = 0;
  std::uint8_t stopping_rounds_ = 0;  // Those after probing in which its samples still come.
  std::uint8_t up_idle_rounds_ = 0;
  bool round_congested_ = false;
  bool round_marked_ = false;
  std::uint8_t full_rounds_ = 0;
  std::uint8_t up_rounds_ = 0;
  double full_bandwidth_ = 0;
  double latest_bandwidth_ = 0;  // The largest of this round.
  std::uint64_t latest_bytes_ = 0;
  std::uint64_t delivered_bytes_ = 0;
  std::uint64_t round_end_bytes_ = 0;
  std::uint64_t round_begin_bytes_ = 0;
  std::uint32_t round_lost_bytes_ = 0;
  Duration round_rtt_ = Duration::max();  // The smallest.
  std::uint32_t rounds_since_probe_ = 0;
  Duration probe_wait_{};
  TimePoint cycle_began_{};
  TimePoint probe_rtt_end_{};
  bool probe_rtt_round_ = false;
  TimePoint resumed_{};
  std::uint32_t up_acked_bytes_ = 0;
  std::uint32_t dice_;
  MaxOfTwo<double> max_bandwidth_;
  MinRttFilter min_rtt_;
  AckBursts bursts_;
  LossFloor loss_floor_;
  Bounds bounds_;
  Bounds saved_bounds_;
};

}  // namespace ztcp::tcp
