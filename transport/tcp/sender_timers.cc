// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Timers of a Sender.
#include <algorithm>
#include <chrono>

#include "transport/tcp/sender.h"

namespace ztcp::tcp {
namespace {

// Time in which a receiver notices a burst, beyond the measured round trip.
constexpr Duration kProbeSlack = std::chrono::microseconds(200);

}  // namespace

Duration Sender::tail_probe_timeout() const {
  // RFC 8985 section 7.2. Its WCDelAckT is for peers that delay ACKs: ours acknowledge each burst.
  // A peer that delays ACKs answers more than one full segment at once, however it was segmented.
  const Duration base = std::max(2 * rtt_.srtt(), rtt_.srtt() + 4 * rtt_.rttvar());
  const bool may_be_delayed = scoreboard_.in_flight_bytes() <= mss_bytes_;
  return std::max(base + kProbeSlack, rto_floor_ / 2) +
         (may_be_delayed ? peer_ack_delay_ : Duration::zero());
}

// Longest interval between probes to a peer that closed its window and answers: several fit into
// the user timeout, so that a single lost answer does not end the connection.
Duration Sender::longest_wait() const {
  const Duration most = std::min(settings_.rto_max, settings_.user_timeout / 4);
  return std::max(most, rtt_.first_rto(rto_floor_));
}

Duration Sender::persist_interval() const {
  return std::min<Duration>(rtt_.first_rto(rto_floor_) * (1LL << persist_backoff_), longest_wait());
}

void Sender::arm_timers(TimePoint now, Wait wait) {
  const bool restart = wait == Wait::kRestarts;
  if (scoreboard_.empty()) {
    rto_deadline_ = probe_deadline_ = reorder_deadline_ = kNever;
    const std::uint64_t unsent = unsent_bytes();
    const std::uint32_t usable = usable_window();
    if (unsent == 0 || (usable > 0 && !is_silly(unsent, usable))) {
      persist_deadline_ = kNever;
    } else if (persist_deadline_ == kNever) {
      persist_deadline_ = now + persist_interval();
    }
    return;
  }
  persist_deadline_ = kNever;
  if (restart || rto_deadline_ == kNever) {
    Duration rto = rtt_.rto(rto_floor_);
    TimePoint limit = user_deadline();
    if (snd_wnd_bytes_ == 0) [[unlikely]] {
      rto = std::min(rto, longest_wait());
      limit = give_up_at();
    }
    rto_deadline_ = std::min(now + rto, limit);
  }
  // RFC 8985 section 7.2: only without other signs of a loss, and one probe at a time.
  const bool probing = state_ == State::kOpen && sack_ && !probe_outstanding_ &&
                       scoreboard_.sacked_bytes() == 0 && rtt_.has_sample();
  if (!probing)
    probe_deadline_ = kNever;
  else if (wait != Wait::kGoesOn || probe_deadline_ == kNever)
    // A probe that would come after the timeout replaces it.
    probe_deadline_ = std::min(now + tail_probe_timeout(), rto_deadline_);
}

// RFC 9293 section 3.8.6.1: a peer that closed its window below the bytes in flight, and answers,
// is alive. It is given up when it does not answer a probe.
TimePoint Sender::give_up_at() const {
  if (snd_wnd_bytes_ == 0) return asked_ == kNever ? kNever : asked_ + settings_.user_timeout;
  return user_deadline();
}

TimePoint Sender::deadline() const {
  const TimePoint pace = pacer_.is_waiting() ? pacer_.next_send() : kNever;
  return std::min({rto_deadline_, probe_deadline_, reorder_deadline_, persist_deadline_, pace});
}

Sender::Timeout Sender::on_timer(TimePoint now) {
  if (persist_deadline_ <= now) {
    persist_deadline_ = now + persist_interval();
    if (usable_window() > 0) {
      override_due_ = true;
      return Timeout::kNone;
    }
    // A peer that answers may keep its window closed; one that is silent is given up.
    note_asked(now);
    if (now - asked_ >= settings_.user_timeout) return Timeout::kGiveUp;
    if (persist_interval() < longest_wait()) ++persist_backoff_;
    persist_deadline_ = std::min(now + persist_interval(), asked_ + settings_.user_timeout);
    return Timeout::kProbe;
  }
  if (reorder_deadline_ <= now) {
    std::uint32_t lost_bytes = 0;
    reorder_deadline_ =
        rack_.detect_loss(now, state_ != State::kOpen, rtt_, scoreboard_, lost_bytes);
    if (lost_bytes > 0 && state_ == State::kOpen) enter_recovery();
    if (state_ == State::kRecovery)
      congestion_.on_recovery_ack(0, /*made_progress=*/false, flight_bytes());
  }
  if (probe_deadline_ <= now) {
    probe_deadline_ = kNever;
    tail_probe_due_ = true;
    rto_deadline_ = now + rtt_.rto(rto_floor_);  // RFC 8985 section 7.3.
  }
  if (rto_deadline_ <= now) {
    if (now >= give_up_at()) return Timeout::kGiveUp;
    on_rto(now);
  }
  return Timeout::kNone;
}

// RFC 6298 section 5, (5.4) to (5.6), and RFC 8985 section 6.3.
void Sender::on_rto(TimePoint now) {
  ++counters_.rto_fired;
  ++tally_.timeouts;
  // RFC 2018 section 8: SACKed segments stay SACKed, unless the very first one is: then the peer
  // has dropped it, otherwise it would have acknowledged it.
  if (scoreboard_.front().is(SentRecord::kSacked)) scoreboard_.forget_sacks();
  rack_.mark_losses_on_rto(now, rtt_, scoreboard_);
  duplicate_acks_ = presumed_bytes_ = 0;
  // In recovery PRR sets the window, and ssthresh has been reduced already.
  if (state_ == State::kRecovery && !undo_armed_) congestion_.keep_reduction();
  congestion_.on_timeout(state_ == State::kOpen, snd_nxt_, scoreboard_.in_flight_bytes());
  ecn_.on_reduced(snd_max_);
  if (state_ == State::kOpen) begin_episode();
  if (state_ != State::kLoss && !undo_armed_) {
    undo_armed_ = true;
    undo_stamped_ = false;
  }
  frto_.stop();
  if (state_ == State::kOpen && sack_ && !timestamps_) frto_.begin(snd_max_);
  state_ = State::kLoss;
  recovery_point_ = snd_max_;
  probe_outstanding_ = tail_probe_due_ = false;
  reorder_deadline_ = kNever;
  rtt_.back_off();
  pace_round_end_ = snd_una_;
  arm_timers(now, Wait::kRestarts);
}

}  // namespace ztcp::tcp
