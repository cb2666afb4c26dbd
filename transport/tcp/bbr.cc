// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Startup, drain, the measurements and the window. bbr_cycle.cc has the cycle of probing.
#include "transport/tcp/bbr.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace ztcp::tcp {
namespace {

constexpr double kStartupGain = 2.77;
constexpr double kDrainGain = 0.5;
constexpr double kStartWindowGain = 2;
// The draft has 2 and 2.25: the window then holds a whole path's bytes in a queue that CUBIC keeps
// filled, and leaves it a quarter of the line.
constexpr double kWindowGain = 1.5;
constexpr double kUpWindowGain = 1.75;
constexpr double kProbeRttGain = 0.5;
constexpr double kPacingMargin = 0.99;
constexpr std::uint8_t kFullRounds = 3;
constexpr std::uint8_t kPeerRounds = 9;
constexpr double kFullGrowth = 1.25;
// Startup ends by loss of more than the bound, and of this many segments of one round.
constexpr std::uint32_t kStartupLosses = 6;
constexpr std::uint32_t kLeastWindowSegments = 4;
constexpr Duration kProbeRttTime = std::chrono::milliseconds(200);
constexpr int kProbeRttRounds = 16;
// Round trips up to so much above the smallest are not evidence of a queue.
constexpr Duration kJitter = std::chrono::microseconds(16);

double rate_of(const RateSample& sample) {
  return static_cast<double>(sample.bytes) * 1e9 / static_cast<double>(sample.interval.count());
}

}  // namespace

void Bbr::begin(Window& window) { window.rate_based = true; }

void Bbr::undo() {
  bounds_.high_bytes = std::max(bounds_.high_bytes, saved_bounds_.high_bytes);
  bounds_.low_bytes = std::max(bounds_.low_bytes, saved_bounds_.low_bytes);
  bounds_.low_bandwidth = std::max(bounds_.low_bandwidth, saved_bounds_.low_bandwidth);
}

bool Bbr::is_queued(Duration rtt) const {
  return min_rtt_.is_known() && rtt != Duration::max() &&
         rtt > min_rtt_.get() + min_rtt_.get() / 4 + kJitter;
}

double Bbr::pacing_gain() const {
  switch (phase_) {
    case Phase::kStartup:
      return kStartupGain;
    case Phase::kDrain:
      return kDrainGain;
    case Phase::kDown:
      return 0.9;
    case Phase::kUp:
      return 1.25;
    default:
      return 1;
  }
}

std::uint64_t Bbr::pacing_rate(const Window& window, Duration srtt) const {
  const double trip = std::chrono::duration<double>(srtt).count();
  const double first = trip > 0 ? kStartupGain * window.cwnd_bytes / trip : 0;
  // The path's own losses drain the queue as the margin does.
  const double margin = std::min(kPacingMargin / (1 - loss_floor_.share()), 1.0);
  const double rate = margin * pacing_gain() * bandwidth();
  if (max_bandwidth_.get() == 0) return static_cast<std::uint64_t>(first);
  return static_cast<std::uint64_t>(std::max(rate, 1.0));
}

std::uint32_t Bbr::bdp_bytes(double gain) const {
  if (!min_rtt_.is_known() || max_bandwidth_.get() == 0) return kNone;
  const double bytes = gain * bandwidth() * std::chrono::duration<double>(min_rtt_.get()).count();
  return static_cast<std::uint32_t>(std::min(bytes, static_cast<double>(kNone)));
}

// Section 5.5.4: room for other flows.
std::uint32_t Bbr::high_less_headroom(std::uint32_t mss_bytes) const {
  if (bounds_.high_bytes == kNone) return kNone;
  const std::uint32_t headroom = std::max(mss_bytes, bounds_.high_bytes / 20 * 3);
  const std::uint32_t least = kLeastWindowSegments * mss_bytes;
  return bounds_.high_bytes > headroom + least ? bounds_.high_bytes - headroom : least;
}

void Bbr::on_ack(TimePoint now, const Ack& ack, Window& window) {
  if (ack.resumed != resumed_) {
    resumed_ = ack.resumed;
    idle_restart_ = true;
  }
  round_lost_bytes_ += ack.lost_bytes;
  if (ack.rtt_sample > Duration::zero()) round_rtt_ = std::min(round_rtt_, ack.rtt_sample);
  count_round(ack, window);
  measure(now, ack, window);
  check_startup(ack);
  if (phase_ == Phase::kDrain && ack.flight_bytes <= bdp_bytes(1)) start_down(now);
  if (pipe_full_) adapt_high(now, ack, window);
  if (is_cycling()) move_cycle(now, ack, window);
  check_min_rtt(now, ack, window);
  set_window(ack, window);
}

// A round: from a segment's departure to its delivery (section 4.1.1.3).
void Bbr::count_round(const Ack& ack, const Window& window) {
  delivered_bytes_ = ack.rate.delivered_bytes;
  round_started_ =
      ack.rate.interval > Duration::zero() && ack.rate.prior_delivered_bytes >= round_end_bytes_;
  if (!round_started_) return;
  end_round(window);
  round_end_bytes_ = round_begin_bytes_ = delivered_bytes_;
  ++rounds_since_probe_;
  bursts_.on_round();
}

void Bbr::end_round(const Window& window) {
  const std::uint64_t delivered = delivered_bytes_ - round_begin_bytes_;
  const bool queued = is_queued(round_rtt_);
  const std::uint64_t sent = delivered + round_lost_bytes_;
  const bool many_lost = loss_floor_.is_exceeded(round_lost_bytes_, sent,
                                                 std::max<std::uint64_t>(sent, probe_flight_bytes_),
                                                 queued, window.mss_bytes);
  round_congested_ = many_lost || std::exchange(round_marked_, false);
  if (phase_ == Phase::kStartup) {
    const bool few = many_lost && round_lost_bytes_ < kStartupLosses * window.mss_bytes;
    if (round_congested_ && !few) {
      pipe_full_ = true;
      bounds_.high_bytes = std::max(
          bdp_bytes(1), static_cast<std::uint32_t>(std::min<std::uint64_t>(latest_bytes_, kNone)));
    }
  }
  if (phase_ == Phase::kDown || phase_ == Phase::kCruise)
    loss_floor_.on_round(delivered, round_lost_bytes_, queued, window.mss_bytes);
  // Section 5.5.10.3: congestion while not probing lowers the bounds until the next probe.
  if (!is_probing() && round_congested_) {
    if (bounds_.low_bandwidth == kNoBandwidth) bounds_.low_bandwidth = max_bandwidth_.get();
    if (bounds_.low_bytes == kNone) bounds_.low_bytes = window.cwnd_bytes;
    bounds_.low_bandwidth = std::max(latest_bandwidth_, kBeta * bounds_.low_bandwidth);
    bounds_.low_bytes =
        std::max(static_cast<std::uint32_t>(std::min<std::uint64_t>(latest_bytes_, kNone)),
                 static_cast<std::uint32_t>(kBeta * bounds_.low_bytes));
  }
  round_lost_bytes_ = 0;
  round_rtt_ = Duration::max();
  latest_bandwidth_ = 0;
  latest_bytes_ = 0;
}

void Bbr::measure(TimePoint now, const Ack& ack, const Window& window) {
  bursts_.on_ack(now, ack.delivered_bytes, bandwidth(), window.cwnd_bytes);
  if (ack.rate.interval <= Duration::zero()) return;
  const double rate = rate_of(ack.rate);
  latest_bandwidth_ = std::max(latest_bandwidth_, rate);
  latest_bytes_ = std::max(latest_bytes_, ack.rate.bytes);
  if (rate >= max_bandwidth_.get() || !ack.rate.app_limited) max_bandwidth_.add(rate);
}

// Section 5.3.1.2: the pipe is full once the bandwidth has grown by less than a quarter in three
// rounds.
void Bbr::check_startup(const Ack& ack) {
  if (phase_ != Phase::kStartup) return;
  if (!pipe_full_ && round_started_ && !ack.rate.app_limited) {
    const double rate = max_bandwidth_.get();
    // The peer's window may be growing still.
    const std::uint8_t most = ack.rate.peer_limited ? kPeerRounds : kFullRounds;
    if (rate >= full_bandwidth_ * kFullGrowth) {
      full_bandwidth_ = rate;
      full_rounds_ = 0;
    } else if (++full_rounds_ >= most) {
      pipe_full_ = true;
    }
  }
  if (pipe_full_) phase_ = Phase::kDrain;
}

// Section 5.3.4: now and then little is sent for a moment, so that a queue of our own making can't
// be mistaken for the path's round trip.
void Bbr::check_min_rtt(TimePoint now, const Ack& ack, const Window& window) {
  const bool expired = min_rtt_.on_sample(now, ack.rtt_sample);
  if (phase_ != Phase::kProbeRtt && expired && !idle_restart_) {
    phase_ = Phase::kProbeRtt;
    probe_rtt_end_ = {};
    stopping_rounds_ = 1;
    start_round();
  }
  if (phase_ == Phase::kProbeRtt) {
    const std::uint32_t least =
        std::max(bdp_bytes(kProbeRttGain), kLeastWindowSegments * window.mss_bytes);
    if (probe_rtt_end_ == TimePoint{} && ack.flight_bytes <= least) {
      probe_rtt_end_ = now + std::min(kProbeRttTime, kProbeRttRounds * min_rtt_.get());
      probe_rtt_round_ = false;
      start_round();
    } else if (probe_rtt_end_ != TimePoint{}) {
      if (round_started_) probe_rtt_round_ = true;
      if (probe_rtt_round_ && now >= probe_rtt_end_) {
        min_rtt_.refresh(now);
        if (pipe_full_) {
          start_down(now);
          phase_ = Phase::kCruise;
        } else {
          phase_ = Phase::kStartup;
        }
      }
    }
  }
  if (ack.delivered_bytes > 0) idle_restart_ = false;
}

void Bbr::set_window(const Ack& ack, Window& window) {
  const std::uint32_t mss = window.mss_bytes;
  const std::uint32_t least = kLeastWindowSegments * mss;
  const bool up = phase_ == Phase::kUp;
  const double gain = up ? kUpWindowGain : is_cycling() ? kWindowGain : kStartWindowGain;
  std::uint64_t most = bdp_bytes(gain);
  most = std::max<std::uint64_t>(most + bursts_.bytes(), std::uint64_t{2} * least);
  if (up) most += 2 * mss;
  std::uint64_t cwnd = std::uint64_t{window.cwnd_bytes} + ack.delivered_bytes;
  if (pipe_full_) cwnd = std::min(cwnd, most);
  // Before the pipe is full the window only grows, except for what the model allows.
  else if (window.cwnd_bytes >= most)
    cwnd = window.cwnd_bytes;

  std::uint32_t bound = kNone;
  if (phase_ == Phase::kCruise || phase_ == Phase::kProbeRtt)
    bound = high_less_headroom(mss);
  else if (is_cycling())
    bound = bounds_.high_bytes;
  bound = std::min(bound, bounds_.low_bytes);
  if (phase_ == Phase::kProbeRtt) bound = std::min(bound, bdp_bytes(kProbeRttGain));
  // The queue that probing made leaves at once: pacing alone drains nothing while other flows'
  // estimates are too high as well, and they would never agree.
  if (phase_ == Phase::kDown)
    bound = std::min<std::uint32_t>(bound, bdp_bytes(1) + bursts_.bytes());
  cwnd = std::min<std::uint64_t>(cwnd, std::max(bound, least));
  window.cwnd_bytes = static_cast<std::uint32_t>(std::max<std::uint64_t>(cwnd, least));
}

}  // namespace ztcp::tcp
