// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Chooses the congestion control of a connection by what it observes. It begins with CUBIC, which
// is fair to all other traffic. Where losses come without a queue, again and again, they are not
// congestion, and CUBIC sends far less than the path carries: then it changes to BBR. Where
// switches mark packets (ECN) while the queue is still short, and the peer counts the marks, it
// changes to DCTCP; a switch that marks at a longer queue is made for other controls. It returns to
// CUBIC when more is lost with a queue than without one, or losses come without marks while DCTCP
// is in use, which means other traffic, and then stays with it for a time that doubles with each
// such return.
//
// A queue is known by the round trip. Where that is less than kLeastRtt a host's own delays hide
// it, and CUBIC recovers from a loss soon enough. A shallow buffer hides it, too: there BBR's flows
// lose more than CUBIC's, and a few starve the others. So a path that loses more than kMostShare is
// left to CUBIC, and so is one on which BBR loses clearly more than CUBIC did.
#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <new>

#include "core/clock.h"
#include "transport/tcp/bbr.h"
#include "transport/tcp/congestion_control.h"
#include "transport/tcp/cubic.h"
#include "transport/tcp/dctcp.h"

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
  // Lost in rounds of BBR with a queue, that it did not make by probing, beyond kMoreLoss times the
  // losses of rounds without a queue, one segment of each round: the queue is why, and other
  // traffic made it.
  static constexpr std::uint32_t kExcessSegments = 8;
  // The rounds without a queue count by halves after so many segments.
  static constexpr std::uint32_t kCleanSegments = 32768;
  // DCTCP follows so many marked windows in a row with a queue of at most kEarlyQueue: switches for
  // DCTCP mark at 30 frames or so (0.4 ms at 1 Gb/s), those for other controls at 5 ms (CoDel) or
  // 15 ms (PIE).
  static constexpr std::uint32_t kEarlyMarks = 8;
  static constexpr Duration kEarlyQueue = std::chrono::milliseconds(1);
  // DCTCP ends after so many windows with losses and no marks between them.
  static constexpr std::uint32_t kUnmarkedLosses = 4;

  // `counts_marks`: the peer reports marked bytes (RFC 9768).
  AutoControl(SeqNum first, bool counts_marks)
      : counts_marks_(counts_marks), counted_(first), cubic_(first), bbr_(first), dctcp_(first) {}
  explicit AutoControl(SeqNum first) : AutoControl(first, false) {}
  // The algorithm in use is a member.
  AutoControl(const AutoControl&) = delete;
  AutoControl& operator=(const AutoControl&) = delete;

  void on_restart(TimePoint now, Window& window) override { active_->on_restart(now, window); }
  void on_ack(TimePoint now, const Ack& ack, Window& window) override;
  std::uint32_t on_loss(const Window& window) override;
  std::uint32_t on_mark(const Window& window) override;
  void on_timeout(SeqNum snd_nxt) override { active_->on_timeout(snd_nxt); }
  void save() override { active_->save(); }
  void undo() override { active_->undo(); }
  std::uint64_t pacing_rate(const Window& window, Duration srtt) const override {
    return active_->pacing_rate(window, srtt);
  }
  const char* name() const override { return active_->name(); }

  bool uses_bbr() const { return active_ == &bbr_; }
  bool uses_dctcp() const { return active_ == &dctcp_; }

 private:
  bool is_queued(Duration rtt) const {
    return rtt > min_rtt_ + min_rtt_ / 8 + std::chrono::microseconds(32);
  }
  void watch_cubic(TimePoint now, const Ack& ack, Window& window);
  void change_to_bbr(const Ack& ack, Window& window);
  void change_to_dctcp(const Ack& ack, Window& window);
  void watch_bbr(const Ack& ack, Window& window);
  void count_round(bool is_queued_round, std::uint32_t mss_bytes);
  void count(const Ack& ack);
  void forget_counts() { passed_bytes_ = lost_bytes_ = 0; }
  double lost_share() const {
    return static_cast<double>(lost_bytes_) / static_cast<double>(passed_bytes_ + lost_bytes_);
  }
  bool loses_more(const Window& window);
  void return_to_cubic(const Ack& ack, Window& window);

  const bool counts_marks_;
  std::uint32_t clean_losses_ = 0;
  Duration stay_ = kFirstStay;
  TimePoint may_change_{};
  TimePoint now_{};
  TimePoint first_loss_{};
  Duration min_rtt_{};
  Duration round_rtt_{};  // CUBIC: the largest of this round; BBR: the smallest.
  Duration last_rtt_{};   // The same of the round before.
  std::uint64_t round_passed_bytes_ = 0;
  std::uint64_t round_lost_bytes_ = 0;
  SeqNum round_end_;
  SeqNum counted_;  // The ACK up to which bytes are counted.
  // CUBIC: since the first of clean_losses_; BBR: of this batch.
  std::uint64_t passed_bytes_ = 0;
  std::uint64_t lost_bytes_ = 0;
  double cubic_share_ = 0;  // Lost while CUBIC was in use.
  // Without a queue, of CUBIC and of BBR.
  double clean_passed_bytes_ = 0;
  double clean_lost_bytes_ = 0;
  double excess_bytes_ = 0;
  std::uint32_t lossy_batches_ = 0;
  Duration marked_rtt_{};  // The newest ACK's that reported marks.
  std::uint32_t early_marks_ = 0;
  std::uint32_t unmarked_losses_ = 0;
  Cubic cubic_;
  Bbr bbr_;
  Dctcp dctcp_;
  CongestionControl* active_ = &cubic_;
};

// For connections whose peer counts marks.
inline CongestionControl& make_auto_control_by_marks(CongestionControl::Storage& storage,
                                                     SeqNum first) {
  static_assert(sizeof(AutoControl) <= sizeof storage);
  return *new (&storage) AutoControl(first, true);
}

}  // namespace ztcp::tcp
