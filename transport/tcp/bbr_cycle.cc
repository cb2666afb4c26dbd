// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The cycle of probing for bandwidth (section 5.3.3): down, cruise, refill, up.
#include <algorithm>
#include <chrono>

#include "transport/tcp/bbr.h"

namespace ztcp::tcp {
namespace {

constexpr double kUpInFlight = 1.25;
// Between two probes: a time, or so many rounds where they are shorter, as a flow with Reno's
// growth would need to fill the headroom (section 5.3.3.5.1).
constexpr Duration kLeastWait = std::chrono::milliseconds(400);
constexpr std::uint32_t kWaitSpreadMs = 200;
constexpr std::uint32_t kMostRounds = 63;
constexpr std::uint8_t kMostUpRounds = 30;
// Then the queue is another flow's, which does not drain it.
constexpr std::uint32_t kMostDownRounds = 10;
constexpr std::uint8_t kMostIdleRounds = 8;
constexpr double kUpGrowth = 1.1;
// In the second one the losses of the last segments of a probe are found.
constexpr std::uint8_t kStoppingRounds = 2;

}  // namespace

// xorshift32, seeded by the connection's first number: flows must not probe in step.
std::uint32_t Bbr::random_below(std::uint32_t bound) {
  dice_ ^= dice_ << 13;
  dice_ ^= dice_ >> 17;
  dice_ ^= dice_ << 5;
  return dice_ % bound;
}

void Bbr::start_down(TimePoint now) {
  phase_ = Phase::kDown;
  cycle_began_ = now;
  rounds_since_probe_ = random_below(2);
  probe_wait_ = kLeastWait + std::chrono::milliseconds(random_below(kWaitSpreadMs));
  stopping_rounds_ = kStoppingRounds;
  start_round();
}

void Bbr::start_refill() {
  phase_ = Phase::kRefill;
  bounds_.low_bandwidth = kNoBandwidth;
  bounds_.low_bytes = kNone;
  up_rounds_ = 0;
  up_acked_bytes_ = 0;
  stopping_rounds_ = 0;
  start_round();
}

void Bbr::start_up(TimePoint now) {
  phase_ = Phase::kUp;
  cycle_began_ = now;
  probe_samples_ = true;
  up_idle_rounds_ = 0;
  full_bandwidth_ = max_bandwidth_.get();
  start_round();
}

// Rounds of probing that find no more bandwidth.
void Bbr::count_up_round() {
  const double rate = max_bandwidth_.get();
  const bool grown = rate >= full_bandwidth_ * kUpGrowth;
  up_idle_rounds_ = grown ? std::uint8_t{0} : static_cast<std::uint8_t>(up_idle_rounds_ + 1);
  if (grown) full_bandwidth_ = rate;
}

bool Bbr::is_time_to_probe(TimePoint now, const Window& window) const {
  if (now > cycle_began_ + probe_wait_) return true;
  const std::uint32_t rounds = std::min(bdp_bytes(1) / window.mss_bytes, kMostRounds);
  return rounds_since_probe_ >= std::max<std::uint32_t>(rounds, 1);
}

void Bbr::move_cycle(TimePoint now, const Ack& ack, const Window& window) {
  switch (phase_) {
    case Phase::kDown:
      if (is_time_to_probe(now, window))
        start_refill();
      else if (rounds_since_probe_ > kMostDownRounds ||
               (ack.flight_bytes <= high_less_headroom(window.mss_bytes) &&
                ack.flight_bytes <= bdp_bytes(1)))
        phase_ = Phase::kCruise;
      return;
    case Phase::kCruise:
      if (is_time_to_probe(now, window)) start_refill();
      return;
    case Phase::kRefill:
      if (round_started_) start_up(now);
      return;
    case Phase::kUp:
      // More is in flight than the bandwidth found so far fills, and it waits in a queue: there is
      // no more. The queue is the same for all flows, so a small one gains as many bytes as a large
      // one and they approach each other.
      if (round_started_) count_up_round();
      if (round_marked_) {
        bounds_.high_bytes = std::max(ack.flight_bytes, bdp_bytes(1));
        start_down(now);
        return;
      }
      if (up_idle_rounds_ > kMostIdleRounds ||
          (now >= cycle_began_ + min_rtt_.get() && is_queued(ack.rtt_sample) &&
           ack.flight_bytes > bdp_bytes(kUpInFlight) + bursts_.bytes()))
        start_down(now);
      return;
    default:
      return;
  }
}

// Section 5.5.10.2.
void Bbr::adapt_high(TimePoint now, const Ack& ack, const Window& window) {
  if (stopping_rounds_ > 0 && round_started_ && --stopping_rounds_ == 0) {
    probe_samples_ = false;
    probe_flight_bytes_ = 0;
    if (is_cycling() && !ack.rate.app_limited) max_bandwidth_.advance();
  }
  if (ack.rate.interval <= Duration::zero()) return;
  const std::uint32_t sent_bytes = ack.rate.sent_flight_bytes;
  if (probe_samples_) probe_flight_bytes_ = std::max(probe_flight_bytes_, sent_bytes);
  if (loss_floor_.is_exceeded(ack.rate.lost_bytes, sent_bytes,
                              std::max(sent_bytes, probe_flight_bytes_), is_queued(ack.rtt_sample),
                              window.mss_bytes)) {
    if (!probe_samples_) return;
    probe_samples_ = false;  // Once per probe.
    if (!ack.rate.app_limited) {
      const std::uint32_t target = std::min(bdp_bytes(1), window.cwnd_bytes);
      bounds_.high_bytes = std::max(sent_bytes, static_cast<std::uint32_t>(kBeta * target));
    }
    if (phase_ == Phase::kUp) start_down(now);
    return;
  }
  if (bounds_.high_bytes == kNone) return;
  if (sent_bytes > bounds_.high_bytes) bounds_.high_bytes = sent_bytes;
  if (phase_ == Phase::kUp) raise_high(ack, window);
}

// By one segment in the first round, twice as many in each further one.
void Bbr::raise_high(const Ack& ack, const Window& window) {
  if (!ack.window_limited || window.cwnd_bytes < bounds_.high_bytes) return;
  const std::uint64_t growth = std::uint64_t{window.mss_bytes} << up_rounds_;
  up_acked_bytes_ += ack.delivered_bytes;
  const std::uint64_t raise =
      std::min<std::uint64_t>(up_acked_bytes_ * growth / window.cwnd_bytes, up_acked_bytes_);
  if (raise >= window.mss_bytes || raise >= growth) {
    bounds_.high_bytes =
        static_cast<std::uint32_t>(std::min<std::uint64_t>(bounds_.high_bytes + raise, kNone - 1));
    up_acked_bytes_ = 0;
  }
  if (round_started_ && up_rounds_ < kMostUpRounds) ++up_rounds_;
}

}  // namespace ztcp::tcp
