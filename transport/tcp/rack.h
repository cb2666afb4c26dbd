// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// RACK: a segment is lost when one sent later has been delivered and reordering is ruled out by
// time (RFC 8985 section 6). The only loss detector for peers with SACK. Owned by a Sender; works
// on its scoreboard.
#pragma once

#include <cstdint>

#include "core/clock.h"
#include "transport/tcp/rtt_estimator.h"
#include "transport/tcp/sack_scoreboard.h"

namespace ztcp::tcp {

class Rack {
 public:
  // SACKed segments beyond which reordering is ruled out as the cause (RFC 5681's DupThresh).
  static constexpr std::uint32_t kDupThresh = 3;

  // Section 6.2 steps 2 and 3. `echoes_older`: the ACK's timestamp echo proves that it is not for
  // the retransmission.
  void on_delivered(TimePoint now, const Delivered& delivered, bool echoes_older,
                    const RttEstimator& rtt);

  // To be called at each ACK; otherwise the numbers could wrap half round before the next D-SACK.
  void on_progress(SeqNum snd_una) {
    if (dsack_round_ && dsack_round_end_.at_or_before(snd_una)) dsack_round_ = false;
  }
  // Section 6.2 step 4: a D-SACK means a retransmission was too early. At most one step per round
  // trip.
  void on_dsack(SeqNum snd_nxt);
  void note_reordering() { reordering_seen_ = true; }
  // A recovery has ended: the wider window persists for 16 of them.
  void on_recovery_end();

  // Section 6.2 step 5: marks lost segments and returns the time at which the next one may become
  // lost, or kNever. `lost_bytes` receives the newly marked bytes.
  TimePoint detect_loss(TimePoint now, bool in_recovery, const RttEstimator& rtt,
                        SackScoreboard& scoreboard, std::uint32_t& lost_bytes) const;

  // Section 6.3: after an RTO the first segment, and every one past its time, is lost.
  void mark_losses_on_rto(TimePoint now, const RttEstimator& rtt, SackScoreboard& scoreboard) const;

  Duration reordering_window(bool in_recovery, std::uint32_t sacked_segments,
                             const RttEstimator& rtt) const;
  bool reordering_seen() const { return reordering_seen_; }
  Duration rtt() const { return rtt_; }

 private:
  static constexpr int kPersistRecoveries = 16;
  static constexpr std::int64_t kMaxMultiplier = 16;

  bool sent_after_delivered(const SentRecord& record) const {
    return record.sent > sent_ || (record.sent == sent_ && record.end().after(end_));
  }

  TimePoint sent_{};  // RACK.xmit_ts: send time of the delivered segment that was sent last.
  SeqNum end_;        // RACK.end_seq.
  Duration rtt_{};    // RACK.rtt
  bool valid_ = false;
  bool reordering_seen_ = false;
  bool dsack_round_ = false;
  SeqNum dsack_round_end_;
  std::int64_t window_multiplier_ = 1;
  int persist_ = kPersistRecoveries;
};

}  // namespace ztcp::tcp
