// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// ACK processing of a Sender.
#include <algorithm>
#include <cassert>
#include <chrono>
#include <utility>

#include "transport/tcp/sender.h"

namespace ztcp::tcp {

void Sender::on_ack(TimePoint now, const Ack& ack) {
  assert(snd_una_.at_or_before(ack.ack) && ack.ack.at_or_before(snd_max_));
  asked_ = kNever;
  // Fast path: such an ACK can only bring progress.
  const bool plain = ack.sack.empty() && is_plain();
  Delivered delivered;
  const std::uint32_t acked = take_cumulative(now, ack, delivered);
  Dsack dsack = Dsack::kNone;
  if (!plain) take_sacks(ack, delivered, dsack);
  if (delivered.full_sized) full_size_delivered_ = true;
  if (delivered.reordered) [[unlikely]] {
    ++counters_.reordered_segments;
    ++tally_.reordered_segments;
    tally_.most_reordered_bytes = std::max(tally_.most_reordered_bytes, delivered.reordered_bytes);
  }
  bool same_window = false;
  if (ack.window_valid) {
    same_window = snd_wnd_bytes_ == ack.window_bytes;
    if (snd_wnd_bytes_ == 0 || ack.window_bytes == 0) [[unlikely]] {
      heard_shut_ = now;
      if (snd_wnd_bytes_ != 0) {
        ++tally_.zero_windows;
      } else if (ack.window_bytes != 0 && shut_since_ != kNever) {
        shut_time_ += now - shut_since_;
        shut_since_ = kNever;
      }
    }
    snd_wnd_bytes_ = ack.window_bytes;
    max_window_bytes_ = std::max(max_window_bytes_, ack.window_bytes);
    if (snd_wnd_bytes_ > 0) persist_backoff_ = 0;
  }

  rack_.on_progress(snd_una_);
  // With a duplicate reported, the original was answered earlier and that answer was lost: the echo
  // is of that time, so it is no sample. But the path works.
  const bool answers = acked > 0 && dsack == Dsack::kNone;
  if (acked > 0 && !answers) rtt_.forget_backoff();
  const Duration sample = sample_rtt(now, ack, delivered, answers);
  const bool echoes_older = delivered.newest_retransmitted && ack.has_timestamps &&
                            timestamp_before(ack.timestamp_echo, clock_.at(delivered.newest_sent));
  rack_.on_delivered(now, delivered, echoes_older, rtt_);
  if (!plain) {
    // A needless tail loss probe says nothing about reordering.
    if (dsack == Dsack::kOther) rack_.on_dsack(snd_nxt_);
    if (undo_if_spurious(ack, dsack, acked > 0) || undo_by_frto(ack, delivered, dsack, acked > 0)) {
      duplicate_acks_ = presumed_bytes_ = 0;
    } else if (sack_) {
      if (dsack == Dsack::kOther) undo_if_all_was_needless();
      detect_losses(now);
    } else {
      count_duplicates(ack, acked, same_window, delivered);
    }
    check_tail_probe(ack, dsack, acked > 0);
  }
  const std::uint32_t ce_bytes = ecn_.is_on() ? ecn_.take({.flags = ack.flags,
                                                           .pure = ack.pure,
                                                           .una = snd_una_,
                                                           .counters = ack.ecn_bytes,
                                                           .delivered_bytes = delivered.bytes,
                                                           .mss_bytes = mss_bytes_})
                                              : 0;
  move_state(now, ack, delivered, acked, sample, ce_bytes);
  const bool round_over = pace_round_end_.at_or_before(snd_una_) && acked > 0;
  if (round_over || congestion_.is_rate_based()) set_pace();
  arm_timers(now, acked > 0 ? Wait::kRestarts : Wait::kGoesOn);
  assert(scoreboard_.size() > 64 || scoreboard_.is_consistent());
}

void Sender::on_overtaken_ack(TimePoint now, SeqNum ack, std::span<const wire::SackBlock> sack) {
  on_ack(now, {.ack = snd_una_,
               .window_bytes = snd_wnd_bytes_,
               .window_valid = false,
               .sack = sack,
               .behind_bytes = bytes_between(ack, snd_una_)});
}

std::uint32_t Sender::take_cumulative(TimePoint now, const Ack& ack, Delivered& delivered) {
  const std::uint32_t acked = bytes_between(snd_una_, ack.ack);
  if (acked == 0) return 0;
  const std::uint64_t acked_to = offset(ack.ack);
  // Only the FIN has a number but no byte.
  fin_acked_ = fin_queued_ && acked_to > queue_.end();
  queue_.pop(std::min(acked_to, queue_.end()));
  scoreboard_.acknowledge(ack.ack, mss_bytes_, delivered);
  snd_una_ = ack.ack;
  if (snd_nxt_.before(snd_una_)) snd_nxt_ = snd_una_;  // After lower_mss().
  progress_ = now;
  return acked;
}

void Sender::take_sacks(const Ack& ack, Delivered& delivered, Dsack& dsack) {
  for (std::size_t i = 0; i < ack.sack.size(); ++i) {
    SeqNum begin(ack.sack[i].begin);
    const SeqNum end(ack.sack[i].end);
    if (!begin.before(end)) continue;
    if (i == 0) {
      // RFC 2883 section 4: a first block below the cumulative ACK, or inside the second block,
      // reports bytes that arrived twice.
      const bool below = end.at_or_before(snd_una_ - ack.behind_bytes);
      const bool inside = ack.sack.size() > 1 && SeqNum(ack.sack[1].begin).at_or_before(begin) &&
                          end.at_or_before(SeqNum(ack.sack[1].end));
      if (below || inside) {
        // Only path probes carried bytes below the first; answers to them come late, too.
        const bool of_stream =
            !begin.before(snd_una_) || bytes_between(begin, snd_una_) <= queue_.begin();
        const bool ours = of_stream && bytes_between(begin, snd_max_) <=
                                           max_window_bytes_ + bytes_between(begin, end);
        const bool of_probe = probe_outstanding_ && probe_retransmitted_ && end == probe_end_;
        if (ours) {
          dsack = of_probe ? Dsack::kOfProbe : Dsack::kOther;
          note_dsack(begin, end, of_probe);
        }
        continue;
      }
    }
    // Blocks of bytes never sent, or already acknowledged, are ignored.
    if (ack.behind_bytes > 0 && begin.before(snd_una_)) begin = earlier(snd_una_, end);
    if (begin == end || begin.before(snd_una_) || end.after(snd_max_)) continue;
    if (sack_) scoreboard_.sack(begin, end, mss_bytes_, delivered);
  }
}

// A segment sent once gives a sample (Karn's rule), unless the ACK also covers one sent twice; then
// the echoed timestamp tells which transmission is answered (RFC 7323 section 4).
Duration Sender::sample_rtt(TimePoint now, const Ack& ack, const Delivered& delivered,
                            bool answers) {
  Duration sample{};
  if (delivered.has_rtt_sample && !delivered.any_retransmitted) {
    sample = now - delivered.rtt_sent;
  } else if (answers && timestamps_ && ack.has_timestamps) {
    sample = clock_.since(now, ack.timestamp_echo);
    if (sample < Duration::zero() || sample > settings_.user_timeout) return {};
    sample = std::max(sample, Duration(1));
  } else {
    return {};
  }
  rtt_.on_sample(now, sample);
  rtts_.add(static_cast<std::uint64_t>(sample.count()));
  return sample;
}

bool Sender::undo_if_spurious(const Ack& ack, Dsack dsack, bool advanced) {
  if (!undo_armed_ || !undo_stamped_ || !advanced) return false;
  undo_armed_ = false;  // RFC 3522 section 3.2: the first acceptable ACK decides.
  if (!ack.has_timestamps || !timestamp_before(ack.timestamp_echo, undo_timestamp_)) return false;
  undo_spurious(dsack);
  return true;
}

bool Sender::undo_by_frto(const Ack& ack, const Delivered& delivered, Dsack dsack, bool advanced) {
  const bool may_send_new = unsent_bytes() > 0 && usable_window() > 0;
  if (!frto_.on_ack(ack.ack, ack.sack, advanced, delivered.has_rtt_sample, may_send_new))
    return false;
  undo_spurious(dsack);
  return true;
}

void Sender::undo_spurious(Dsack dsack) {
  needless_armed_ = false;
  ++counters_.spurious_recoveries;
  ++tally_.spurious_recoveries;
  scoreboard_.forget_losses();
  congestion_.undo();
  rtt_.forget_backoff();
  if (dsack == Dsack::kNone) {
    // The segment was late, not lost: RACK must wait longer.
    rack_.note_reordering();
    rack_.on_dsack(snd_nxt_);
  }
  state_ = State::kOpen;
  reorder_deadline_ = kNever;
  pace_round_end_ = snd_una_;
}

void Sender::note_dsack(SeqNum begin, SeqNum end, bool of_probe) {
  const std::uint32_t bytes = bytes_between(begin, end);
  const std::uint32_t segments = (bytes + mss_bytes_ - 1) / mss_bytes_;
  counters_.dsacked_segments += segments;
  tally_.dsacked_segments += segments;
  const bool of_episode = needless_armed_ && !of_probe && episode_begin_.at_or_before(begin) &&
                          end.at_or_before(repeated_end_);
  if (of_episode) needed_bytes_ -= std::min(needed_bytes_, bytes);
}

// Every retransmission since the first loss was reported as needless: nothing was lost. Not decided
// while a segment deemed lost has not been retransmitted yet.
void Sender::undo_if_all_was_needless() {
  if (!needless_armed_ || needed_bytes_ > 0 || scoreboard_.lost_bytes() > 0) return;
  needless_armed_ = undo_armed_ = false;
  ++counters_.spurious_recoveries;
  ++tally_.spurious_recoveries;
  congestion_.undo();
  rtt_.forget_backoff();
  if (state_ == State::kRecovery) rack_.on_recovery_end();
  state_ = State::kOpen;
  pace_round_end_ = snd_una_;
}

void Sender::detect_losses(TimePoint now) {
  std::uint32_t lost_bytes = 0;
  reorder_deadline_ = rack_.detect_loss(now, state_ != State::kOpen, rtt_, scoreboard_, lost_bytes);
}

// Without SACK: RFC 6582, three duplicates and then one hole per partial ACK. A duplicate stands
// for a segment that has left the path (RFC 6937 section 3), so the first two let new data out (RFC
// 3042), and recovery goes on sending.
void Sender::count_duplicates(const Ack& ack, std::uint32_t acked_bytes, bool same_window,
                              Delivered& delivered) {
  if (acked_bytes > 0) {
    duplicate_acks_ = 0;
    const bool partial = state_ == State::kRecovery && ack.ack.before(recovery_point_);
    if (!partial) {
      presumed_bytes_ = 0;
      return;
    }
    // One segment filled the hole; duplicates have reported the others.
    const std::uint32_t told =
        std::min(presumed_bytes_, acked_bytes - std::min(acked_bytes, mss_bytes_));
    presumed_bytes_ -= told;
    delivered.bytes -= std::min(delivered.bytes, told);
    if (!scoreboard_.empty() && !scoreboard_.front().is(SentRecord::kLost))
      scoreboard_.mark_lost(0);
    return;
  }
  // RFC 5681 section 2: an ACK that updates the window is no duplicate.
  if (!ack.pure || !same_window || scoreboard_.empty()) return;
  if (state_ != State::kLoss && flight_bytes() > 0) {
    const std::uint32_t bytes = std::min(mss_bytes_, flight_bytes());
    presumed_bytes_ += bytes;
    delivered.bytes += bytes;
  }
  if (++duplicate_acks_ == Rack::kDupThresh && state_ == State::kOpen &&
      !scoreboard_.front().is(SentRecord::kLost))
    scoreboard_.mark_lost(0);
}

// RFC 8985 section 7.4.2: did the probe repair a loss that was not detected otherwise?
void Sender::check_tail_probe(const Ack& ack, Dsack dsack, bool advanced) {
  if (!probe_outstanding_ || ack.ack.before(probe_end_)) return;
  const bool lost_nothing = !probe_retransmitted_ || dsack != Dsack::kNone;
  const bool repaired = !lost_nothing && ack.ack.after(probe_end_);
  // Both copies arrived; the peer has no D-SACK.
  const bool both_came = ack.pure && !advanced && ack.sack.empty();
  if (lost_nothing || repaired || both_came) probe_outstanding_ = false;
  if (repaired && state_ == State::kOpen) {
    congestion_.on_repaired_loss();
    pace_round_end_ = snd_una_;
  }
}

// The first loss after a time without any.
void Sender::begin_episode() {
  needless_armed_ = true;
  episode_begin_ = snd_una_;
  // A probe that is still in flight will be reported, too.
  const bool has_probe = probe_outstanding_ && probe_retransmitted_;
  needed_bytes_ = has_probe ? mss_bytes_ : 0;
  repeated_end_ = has_probe ? probe_end_ : snd_una_;
}

void Sender::enter_recovery() {
  begin_episode();
  state_ = State::kRecovery;
  recovery_point_ = snd_max_;
  congestion_.enter_recovery(scoreboard_.outstanding_bytes());
  undo_armed_ = true;
  undo_stamped_ = false;
  probe_outstanding_ = tail_probe_due_ = false;
  pace_round_end_ = snd_una_;
  ecn_.on_reduced(snd_max_);
  ++counters_.rack_recoveries;
  ++tally_.fast_recoveries;
}

void Sender::move_state(TimePoint now, const Ack& ack, const Delivered& delivered,
                        std::uint32_t acked_bytes, Duration rtt_sample, std::uint32_t ce_bytes) {
  marked_bytes_ += ce_bytes;
  const bool past_point = recovery_point_.at_or_before(ack.ack);
  const State before = state_;
  if (state_ == State::kRecovery && past_point) {
    congestion_.leave_recovery();
    rack_.on_recovery_end();
    state_ = State::kOpen;
    undo_armed_ = false;
    pace_round_end_ = snd_una_;
  } else if (state_ == State::kLoss && past_point) {
    state_ = State::kOpen;
    undo_armed_ = false;
  }
  if (state_ == State::kOpen && scoreboard_.lost_bytes() > 0) enter_recovery();

  if (congestion_.is_rate_based()) {
    if (delivered.bytes > 0 || scoreboard_.ever_lost_bytes() != told_lost_bytes_)
      tell_algorithm(now, ack, delivered, acked_bytes, rtt_sample);
  } else if (state_ == State::kRecovery) {
    congestion_.on_recovery_ack(delivered.bytes, acked_bytes > 0, flight_bytes());
  } else if (acked_bytes > 0 && before != State::kRecovery) {
    // RFC 5681 section 3.1: bytes that move snd.una count, not SACKed ones. After a timeout many of
    // them may have been delivered long ago, not by the retransmissions.
    tell_algorithm(now, ack, delivered,
                   before == State::kLoss ? std::min(acked_bytes, delivered.bytes) : acked_bytes,
                   rtt_sample);
  }
  if (ce_bytes > 0) [[unlikely]]
    take_marks(now, acked_bytes, ce_bytes);
}

void Sender::take_marks(TimePoint now, std::uint32_t acked_bytes, std::uint32_t ce_bytes) {
  ++counters_.ecn_echoes;
  if (ecn_.is_accurate()) tally_.marked_bytes += ce_bytes;
  if (ecn_.is_accurate() && marked_rounds_.on_mark(now, {.una = snd_una_,
                                                         .nxt = snd_nxt_,
                                                         .acked_bytes = queue_.begin(),
                                                         .newly_acked_bytes = acked_bytes,
                                                         .ce_bytes = ce_bytes,
                                                         .is_idle = scoreboard_.empty()}))
    news_.path_congested = true;
  if (state_ != State::kOpen || !ecn_.may_reduce()) return;
  congestion_.on_mark();
  ecn_.on_reduced(snd_max_);
  pace_round_end_ = snd_una_;
  ++counters_.ecn_reductions;
  ++tally_.ecn_reductions;
  // A queue of the switch's threshold, at least.
  constexpr Duration kLeastDelay = std::chrono::microseconds(4);
  const Duration least = rtt_.min_rtt();
  const bool is_delayed = rtt_.srtt() > least + std::max(least / 4, kLeastDelay);
  if (!ecn_.is_believable(now, is_delayed)) ++counters_.ecn_faults;
}

void Sender::tell_algorithm(TimePoint now, const Ack& ack, const Delivered& delivered,
                            std::uint32_t acked_bytes, Duration rtt_sample) {
  // Applies to all ACKs of the data that filled the window, not only to the first of a burst.
  if (window_limited_ && limited_end_.at_or_before(ack.ack - acked_bytes)) window_limited_ = false;
  const std::uint64_t lost_bytes = scoreboard_.ever_lost_bytes();
  CongestionControl::Ack told{
      .ack = ack.ack,
      .snd_nxt = snd_nxt_,
      .acked_bytes = acked_bytes,
      .ce_bytes = std::exchange(marked_bytes_, 0),
      .window_limited = window_limited_ || state_ == State::kLoss,
      .rtt_sample = rtt_sample,
      .srtt = rtt_.srtt(),
      .min_rtt = rtt_.has_sample() ? rtt_.min_rtt() : Duration::zero(),
      .delivered_bytes = delivered.bytes,
      .lost_bytes = static_cast<std::uint32_t>(lost_bytes - told_lost_bytes_),
      .flight_bytes = flight_bytes(),
      .in_recovery = state_ != State::kOpen,
  };
  told_lost_bytes_ = lost_bytes;
  if (congestion_.is_rate_based()) [[unlikely]]
    told.rate = rate_.on_ack(now, delivered, lost_bytes, told.min_rtt);
  const std::uint8_t changes = congestion_.changes();
  congestion_.on_ack(now, told);
  if (congestion_.changes() != changes) [[unlikely]] {
    rate_.begin(now);
    news_.control_changed = true;
    ++counters_.control_changes;
  }
}

void Sender::set_pace() {
  pace_round_end_ = snd_nxt_;
  if (congestion_.is_rate_based()) {
    pacer_.set_exact_rate(congestion_.pacing_rate(rtt_.srtt()), rtt_.srtt());
    return;
  }
  // Without pacing, too: the algorithm may have been rate based until now.
  pacer_.set_rate(settings_.pacing ? congestion_.pacing_rate(rtt_.srtt()) : 0, rtt_.srtt());
}

}  // namespace ztcp::tcp
