// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/auto_control.h"

#include <algorithm>
#include <new>
#include <utility>

namespace ztcp::tcp {

void AutoControl::on_ack(TimePoint now, const Ack& ack, Window& window) {
  now_ = now;
  if (ack.min_rtt > Duration::zero()) min_rtt_ = ack.min_rtt;
  if (ack.ce_bytes > 0) marked_rtt_ = ack.rtt_sample;
  active_->on_ack(now, ack, window);
  count(ack);
  if (uses_bbr())
    watch_bbr(ack, window);
  else if (!uses_dctcp())
    watch_cubic(now, ack, window);
  else if (unmarked_losses_ >= kUnmarkedLosses && !ack.in_recovery)
    return_to_cubic(ack, window);
}

std::uint32_t AutoControl::on_loss(const Window& window) {
  if (uses_dctcp()) ++unmarked_losses_;
  if (active_ != &cubic_) return active_->on_loss(window);
  // The round trips just before the loss are those of the segments around the lost one.
  if (min_rtt_ < kLeastRtt || is_queued(std::max(round_rtt_, last_rtt_))) {
    clean_losses_ = 0;
  } else {
    if (clean_losses_ == 0 || now_ > first_loss_ + kSpan) {
      clean_losses_ = 0;
      first_loss_ = now_;
      forget_counts();
    }
    ++clean_losses_;
  }
  return cubic_.on_loss(window);
}

// Marks tell of a queue better than round trips.
std::uint32_t AutoControl::on_mark(const Window& window) {
  clean_losses_ = 0;
  unmarked_losses_ = 0;
  if (uses_bbr()) excess_bytes_ += window.mss_bytes;
  const bool is_early = marked_rtt_ > Duration::zero() && marked_rtt_ <= min_rtt_ + kEarlyQueue;
  early_marks_ = is_early ? early_marks_ + 1 : 0;
  return active_->on_mark(window);
}

void AutoControl::watch_cubic(TimePoint now, const Ack& ack, Window& window) {
  round_rtt_ = std::max(round_rtt_, ack.rtt_sample);
  if (round_end_.at_or_before(ack.ack) || round_end_.after(ack.snd_nxt)) {
    last_rtt_ = std::exchange(round_rtt_, Duration{});
    round_end_ = ack.snd_nxt;
  }
  if (now < may_change_ || ack.in_recovery) return;
  if (counts_marks_ && early_marks_ >= kEarlyMarks)
    change_to_dctcp(ack, window);
  else if (clean_losses_ >= kLosses && now <= first_loss_ + kSpan)
    change_to_bbr(ack, window);
}

// The window stays: marks have just set it.
void AutoControl::change_to_dctcp(const Ack& ack, Window& window) {
  ++window.changes;
  unmarked_losses_ = 0;
  dctcp_.~Dctcp();
  active_ = new (&dctcp_) Dctcp(ack.snd_nxt);
}

void AutoControl::change_to_bbr(const Ack& ack, Window& window) {
  clean_losses_ = 0;
  cubic_share_ = lost_share();
  if (cubic_share_ > kMostShare) return;
  ++window.changes;
  clean_passed_bytes_ = static_cast<double>(passed_bytes_);
  // So few losses tell their share roughly: as if there had been twice as many.
  clean_lost_bytes_ = 2 * static_cast<double>(lost_bytes_);
  excess_bytes_ = 0;
  forget_counts();
  lossy_batches_ = 0;
  round_passed_bytes_ = round_lost_bytes_ = 0;
  round_rtt_ = Duration::max();
  round_end_ = ack.snd_nxt;
  bbr_.~Bbr();
  active_ = new (&bbr_) Bbr(ack.ack);
  bbr_.begin(window);
  window.ssthresh_bytes = Window::kMaxBytes;
}

void AutoControl::watch_bbr(const Ack& ack, Window& window) {
  if (ack.rtt_sample > Duration::zero()) round_rtt_ = std::min(round_rtt_, ack.rtt_sample);
  if (!round_end_.at_or_before(ack.ack) && !round_end_.after(ack.snd_nxt)) return;
  round_end_ = ack.snd_nxt;
  const bool queued = round_rtt_ != Duration::max() && is_queued(round_rtt_);
  // A queue of its own making is gone a round or two after probing.
  if (bbr_.phase() == Bbr::Phase::kCruise || bbr_.phase() == Bbr::Phase::kDown)
    count_round(queued, window.mss_bytes);
  round_passed_bytes_ = round_lost_bytes_ = 0;
  round_rtt_ = Duration::max();
  const bool is_wrong = loses_more(window) || excess_bytes_ >= kExcessSegments * window.mss_bytes;
  if (is_wrong && !ack.in_recovery) return_to_cubic(ack, window);
}

// Where packets are lost by chance a queue loses no more than its absence: a round with both says
// nothing.
void AutoControl::count_round(bool is_queued_round, std::uint32_t mss_bytes) {
  const auto passed = static_cast<double>(round_passed_bytes_);
  const auto lost = static_cast<double>(round_lost_bytes_);
  if (is_queued_round) {
    const double share = clean_lost_bytes_ / (clean_passed_bytes_ + clean_lost_bytes_);
    // One round may have the losses of a probe.
    excess_bytes_ += std::min<double>(lost - kMoreLoss * share * (passed + lost), mss_bytes);
  } else {
    excess_bytes_ -= mss_bytes;
    if (clean_passed_bytes_ > static_cast<double>(std::uint64_t{kCleanSegments} * mss_bytes)) {
      clean_passed_bytes_ /= 2;
      clean_lost_bytes_ /= 2;
    }
    clean_passed_bytes_ += passed;
    clean_lost_bytes_ += lost;
  }
  excess_bytes_ = std::max(excess_bytes_, 0.0);
}

void AutoControl::count(const Ack& ack) {
  if (ack.ack.after(counted_)) {
    const std::uint32_t passed = bytes_between(counted_, ack.ack);
    passed_bytes_ += passed;
    round_passed_bytes_ += passed;
    counted_ = ack.ack;
  }
  lost_bytes_ += ack.lost_bytes;
  round_lost_bytes_ += ack.lost_bytes;
}

// At the end of a round. Loss that rises with the rate is congestion, also where no queue is seen.
bool AutoControl::loses_more(const Window& window) {
  if (passed_bytes_ + lost_bytes_ >= std::uint64_t{kBatchSegments} * window.mss_bytes) {
    const bool is_lossy =
        lost_share() > std::min(kMoreLoss * cubic_share_, kMostShare) + kMoreShare;
    lossy_batches_ = is_lossy ? lossy_batches_ + 1 : 0;
    forget_counts();
  }
  return lossy_batches_ >= kLossyBatches;
}

void AutoControl::return_to_cubic(const Ack& ack, Window& window) {
  ++window.changes;
  forget_counts();
  may_change_ = now_ + stay_;
  stay_ = std::min(2 * stay_, kMostStay);
  early_marks_ = 0;
  round_rtt_ = last_rtt_ = {};
  cubic_.~Cubic();
  active_ = new (&cubic_) Cubic(ack.snd_nxt);
  window.rate_based = false;
  // Not slow start: the bandwidth is known.
  window.cwnd_bytes = std::max(std::min(window.cwnd_bytes, ack.flight_bytes), 2 * window.mss_bytes);
  window.ssthresh_bytes = window.cwnd_bytes;
}

}  // namespace ztcp::tcp
