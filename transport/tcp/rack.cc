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
  // Step 2: an ACK that comes too soon for the retransmission was caused by the original.
  if (delivered.newest_retransmitted && (echoes_older || sample < rtt.min_rtt())) return;
  rtt_ = sample;
  if (!valid_ || delivered.newest_sent > sent_ ||
      (delivered.newest_sent == sent_ && delivered.newest_end.after(end_))) {
    valid_ = true;
    sent_ = delivered.newest_sent;
    end_ = delivered.newest_end;
  }
}

void Rack::on_dsack(SeqNum snd_una, SeqNum snd_nxt) {
  if (dsack_round_ && snd_una.before(dsack_round_end_)) return;
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
  const Duration patience =
      rtt_ + reordering_window(in_recovery, scoreboard.sacked_segments(), rtt);
  TimePoint next = kNever;
  const std::uint32_t count = scoreboard.size();
  for (std::uint32_t i = 0; i < count; ++i) {
    const SentRecord& record = scoreboard[i];
    if (sent_after_delivered(record)) {
      // First transmissions stand in the order of their times; only retransmissions do not.
      if (!record.is(SentRecord::kRetransmitted)) break;
      continue;
    }
    if (record.is(SentRecord::kSacked) || record.is(SentRecord::kLost)) continue;
    const TimePoint deadline = record.sent + patience;
    if (deadline <= now) {
      lost_bytes += record.length;
      scoreboard.mark_lost(i);
    } else {
      next = std::min(next, deadline);
    }
  }
  return next;
}

void Rack::mark_losses_on_rto(TimePoint now, const RttEstimator& rtt,
                              SackScoreboard& scoreboard) const {
  const Duration patience =
      rtt_ + reordering_window(/*in_recovery=*/true, scoreboard.sacked_segments(), rtt);
  for (std::uint32_t i = 0; i < scoreboard.size(); ++i) {
    const SentRecord& record = scoreboard[i];
    if (record.is(SentRecord::kSacked) || record.is(SentRecord::kLost)) continue;
    if (i == 0 || record.sent + patience <= now) scoreboard.mark_lost(i);
  }
}

}  // namespace ztcp::tcp
