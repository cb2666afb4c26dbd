// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/rack.h"

#include <algorithm>

namespace ztcp::tcp {

void Rack::on_delivered(TimePoint now, const Delivered& delivered, bool echoes_older,
                        const RttEstimator& rtt) {
  if (delivered.reordered) reordering_seen_ = true;
  if (!delivered.any) return;
  const Duration sample = now - delivered.newest_sent;
  // Step 2: an ACK that comes too early for the retransmission was caused by the original.
  if (delivered.newest_retransmitted && (echoes_older || sample < rtt.min_rtt())) return;
  rtt_ = sample;
  if (!valid_ || delivered.newest_sent > sent_ ||
      (delivered.newest_sent == sent_ && delivered.newest_end.after(end_))) {
    valid_ = true;
    sent_ = delivered.newest_sent;
    end_ = delivered.newest_end;
  }
}

void Rack::on_dsack(SeqNum snd_nxt) {
  if (dsack_round_) return;
  dsack_round_ = true;
  dsack_round_end_ = snd_nxt;
  window_multiplier_ = std::min(window_multiplier_ + 1, kMaxMultiplier);
  persist_ = kPersistRecoveries;
}

void Rack::on_recovery_end() {
  if (--persist_ > 0) return;
  persist_ = kPersistRecoveries;
  window_multiplier_ = 1;
}

Duration Rack::reordering_window(bool in_recovery, std::uint32_t sacked_segments,
                                 const RttEstimator& rtt) const {
  if (!reordering_seen_ && (in_recovery || sacked_segments >= kDupThresh)) return {};
  if (!rtt.has_sample()) return {};
  return std::min(window_multiplier_ * (rtt.min_rtt() / 4), rtt.srtt());
}

TimePoint Rack::detect_loss(TimePoint now, bool in_recovery, const RttEstimator& rtt,
                            SackScoreboard& scoreboard, std::uint32_t& lost_bytes) const {
  lost_bytes = 0;
  if (!valid_) return kNever;
  const Duration timeout = rtt_ + reordering_window(in_recovery, scoreboard.sacked_segments(), rtt);
  TimePoint next = kNever;
  // False: not yet lost, and neither are segments sent after it.
  const auto is_lost = [&](std::uint32_t i) {
    const TimePoint deadline = scoreboard[i].sent + timeout;
    if (deadline > now) {
      next = std::min(next, deadline);
      return false;
    }
    lost_bytes += scoreboard[i].length;
    scoreboard.mark_lost(i);
    return true;
  };
  for (std::uint32_t i = scoreboard.first_once(); i < scoreboard.size();
       i = scoreboard.next_once(i + 1))
    if (sent_after_delivered(scoreboard[i]) || !is_lost(i)) break;
  std::uint32_t i = scoreboard.first_again();
  for (std::uint32_t left = scoreboard.under_way_again(); left > 0; --left) {
    const std::uint32_t behind = scoreboard.next_again(i);
    // Segments sent at the same time need not be in ascending order.
    if (scoreboard[i].sent > sent_) break;
    if (!sent_after_delivered(scoreboard[i]) && !is_lost(i)) break;
    i = behind;
  }
  return next;
}

void Rack::mark_losses_on_rto(TimePoint now, const RttEstimator& rtt,
                              SackScoreboard& scoreboard) const {
  const Duration timeout =
      rtt_ + reordering_window(/*in_recovery=*/true, scoreboard.sacked_segments(), rtt);
  for (std::uint32_t i = 0; i < scoreboard.size(); ++i) {
    const SentRecord& record = scoreboard[i];
    if (record.is(SentRecord::kSacked) || record.is(SentRecord::kLost)) continue;
    if (i == 0 || record.sent + timeout <= now) scoreboard.mark_lost(i);
  }
}

}  // namespace ztcp::tcp
