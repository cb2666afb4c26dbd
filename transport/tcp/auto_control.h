// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Chooses the congestion control of a connection by what it observes. It begins with CUBIC, which
// is fair to all other traffic. Where losses come without a queue, again and again, they are not
// congestion, and CUBIC sends far less than the path carries: then it changes to BBR. It returns to
// CUBIC when losses come with a queue, which means other traffic, and then stays with it for a time
// that doubles with each such return.
//
// A queue is known by the round trip. Where that is less than kLeastRtt a host's own delays hide
// it, and CUBIC recovers from a loss soon enough. A shallow buffer hides it, too: there BBR's flows
// lose more than CUBIC's, and a few starve the others. So a path that loses more than kMostShare is
// left to CUBIC, and so is one on which BBR loses clearly more than CUBIC did.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>

#include "core/clock.h"
#include "transport/tcp/bbr.h"
#include "transport/tcp/congestion_control.h"
#include "transport/tcp/cubic.h"

namespace ztcp::tcp {

class AutoControl final : public CongestionControl {
 public:
  // BBR follows so many losses in a row that find no queue, each the first of a window, within
  // kSpan.
  static constexpr std::uint32_t kLosses = 8;
  static constexpr Duration kSpan = std::chrono::seconds(20);
  static constexpr Duration kLeastRtt = std::chrono::microseconds(100);
  static constexpr double kMostShare = 0.06;  // Lost of all bytes.
  // After a return to CUBIC, until BBR may be tried again.
  static constexpr Duration kFirstStay = std::chrono::seconds(10);
  static constexpr Duration kMostStay = std::chrono::minutes(10);
  // BBR loses clearly more: by a factor and a share, in this many batches.
  static constexpr double kMoreLoss = 2;
  static constexpr double kMoreShare = 0.004;
  static constexpr std::uint32_t kBatchSegments = 2048;
  static constexpr std::uint32_t kLossyBatches = 2;
  // Rounds of BBR with a queue, that it did not make by probing, and losses.
  static constexpr std::uint32_t kQueuedRounds = 8;

  explicit AutoControl(SeqNum first) : counted_(first), cubic_(first), bbr_(first) {}

  void on_ack(TimePoint now, const Ack& ack, Window& window) override;
  std::uint32_t on_loss(const Window& window) override;
  std::uint32_t on_mark(const Window& window) override;
  void on_timeout(SeqNum snd_nxt) override { active().on_timeout(snd_nxt); }
  void save() override { active().save(); }
  void undo() override { active().undo(); }
  std::uint64_t pacing_rate(const Window& window, Duration srtt) const override {
    return uses_bbr_ ? bbr_.pacing_rate(window, srtt) : cubic_.pacing_rate(window, srtt);
  }
  const char* name() const override { return uses_bbr_ ? bbr_.name() : cubic_.name(); }

  bool uses_bbr() const { return uses_bbr_; }

 private:
  CongestionControl& active() {
    if (uses_bbr_) return bbr_;
    return cubic_;
  }
  bool is_queued(Duration rtt) const {
    return rtt > min_rtt_ + min_rtt_ / 8 + std::chrono::microseconds(32);
  }
  void watch_cubic(TimePoint now, const Ack& ack, Window& window);
  void watch_bbr(const Ack& ack, Window& window);
  void count(const Ack& ack);
  void forget_counts() { passed_bytes_ = lost_bytes_ = 0; }
  double lost_share() const {
    return static_cast<double>(lost_bytes_) / static_cast<double>(passed_bytes_ + lost_bytes_);
  }
  bool loses_more(const Window& window);
  void return_to_cubic(const Ack& ack, Window& window);

  bool uses_bbr_ = false;
  std::uint32_t clean_losses_ = 0;
  Duration stay_ = kFirstStay;
  TimePoint may_change_{};
  std::uint32_t queued_rounds_ = 0;
  TimePoint now_{};
  TimePoint first_loss_{};
  Duration min_rtt_{};
  Duration round_rtt_{};  // CUBIC: the largest of this round; BBR: the smallest.
  Duration last_rtt_{};   // The same of the round before.
  std::uint32_t round_lost_bytes_ = 0;
  SeqNum round_end_;
  SeqNum counted_;  // The ACK up to which bytes are counted.
  // CUBIC: since the first of clean_losses_; BBR: of this batch.
  std::uint64_t passed_bytes_ = 0;
  std::uint64_t lost_bytes_ = 0;
  double cubic_share_ = 0;  // Lost while CUBIC was in use.
  std::uint32_t lossy_batches_ = 0;
  Cubic cubic_;
  Bbr bbr_;
};

}  // namespace ztcp::tcp
