// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The sending half of a connection: which bytes may be sent now, which were lost, and when to give
// up (RFC 9293 section 3.8, RFC 6298, RFC 8985, RFC 6937, RFC 4015). Connects the queue, the
// scoreboard, RACK, the RTT estimator, the congestion window and the pacer. Owned by a Connection,
// which writes the headers.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "core/clock.h"
#include "core/frame.h"
#include "core/histogram.h"
#include "core/unprotected.h"
#include "transport/tcp/congestion.h"
#include "transport/tcp/delivery_rate.h"
#include "transport/tcp/ecn_feedback.h"
#include "transport/tcp/frto.h"
#include "transport/tcp/marked_rounds.h"
#include "transport/tcp/pacer.h"
#include "transport/tcp/rack.h"
#include "transport/tcp/rtt_estimator.h"
#include "transport/tcp/sack_scoreboard.h"
#include "transport/tcp/send_queue.h"
#include "transport/tcp/seq_num.h"
#include "transport/tcp/settings.h"
#include "transport/tcp/stack.h"
#include "transport/tcp/statistics.h"
#include "transport/tcp/timestamp_clock.h"
#include "transport/wire/ipv4.h"
#include "transport/wire/tcp_header.h"
#include "transport/wire/tcp_options.h"

namespace ztcp::tcp {

class Sender {
 public:
  // Memory of the Stack, which outlives the Sender.
  struct Memory {
    std::span<SentRecord> records;
    std::span<SendQueue::Piece> pieces;
    std::span<std::byte> copied;
  };
  // Results of the handshake.
  struct Terms {
    SeqNum first;                 // Number of the first payload byte: ISS + 1.
    std::uint32_t mss_bytes = 0;  // Payload of a full segment, without options.
    std::uint32_t peer_window_bytes = 0;
    bool timestamps = false;
    bool sack = false;
    EcnMode ecn = EcnMode::kOff;
    bool ecn_changed = false;  // See EcnHandshake.
    TimestampClock clock;
  };
  struct Ack {
    SeqNum ack;
    std::uint32_t window_bytes = 0;
    bool window_valid = true;  // False: the segment is older than that of the last window update.
    bool pure = true;          // No payload, SYN or FIN.
    wire::TcpFlags flags{};
    const std::optional<wire::EcnBytes>* ecn_bytes = nullptr;
    bool has_timestamps = false;
    std::uint32_t timestamp_echo = 0;
    std::span<const wire::SackBlock> sack;
    // For an overtaken ACK: by how much its own number was below `ack`.
    std::uint32_t behind_bytes = 0;
  };
  struct Outgoing {
    SeqNum seq;
    bool fin = false;
    bool push = false;
    wire::TcpFlags cwr;
    wire::Ecn ecn = wire::Ecn::kNotCapable;
  };
  enum class Timeout : std::uint8_t { kNone, kProbe, kGiveUp };

  // `rto_floor` follows the poller's gaps: no timeout is shorter.
  Sender(const Memory& memory, const TcpSettings& settings, const Duration& rto_floor,
         Counters& counters);

  void begin(TimePoint now, const Terms& terms);
  void reset();

  // --- The user's side
  bool write(std::span<const std::byte> copied, std::span<const Fragment> referenced) {
    return !fin_queued_ && queue_.write(copied, referenced);
  }
  std::size_t room() const;
  void queue_fin() { fin_queued_ = true; }
  void expect_late_acks() {
    peer_ack_delay_ = settings_.late_ack_delay;
    rtt_.set_min_rto(settings_.rto_min + peer_ack_delay_);
  }

  // --- Input. ack is in [snd.una, snd.max].
  void on_ack(TimePoint now, const Ack& ack);
  // An ACK of `ack`, below snd.una, that a later ACK has overtaken.
  void on_overtaken_ack(TimePoint now, SeqNum ack, std::span<const wire::SackBlock> sack);

  // --- Output. Fills payload fields of `frame`, whose headers the caller writes.
  bool next(TimePoint now, TxFrame& frame, Outgoing& out);

  // --- Timers
  ZTCP_UNPROTECTED TimePoint deadline() const;
  // kProbe: send an empty segment that the peer must answer (zero window).
  Timeout on_timer(TimePoint now);

  // The path carries less (RFC 1191): everything in flight is segmented again.
  void lower_mss(TimePoint now, std::uint32_t mss_bytes);
  // The path carries more again: applies to bytes sent from here on.
  void raise_mss(std::uint32_t mss_bytes);
  void set_max_super_segment(std::uint32_t bytes);

  SeqNum snd_una() const { return snd_una_; }
  SeqNum snd_nxt() const { return snd_nxt_; }
  SeqNum snd_max() const { return snd_max_; }
  std::uint32_t mss_bytes() const { return mss_bytes_; }
  std::uint32_t window_bytes() const { return snd_wnd_bytes_; }
  // For how long unsent bytes have waited for the peer to open its closed window, in all.
  Duration zero_window_time(TimePoint now) const {
    return shut_time_ + (shut_since_ != kNever ? now - shut_since_ : Duration::zero());
  }
  std::uint32_t max_window_bytes() const { return max_window_bytes_; }
  std::uint64_t acked_bytes() const { return queue_.begin(); }
  bool has_unacked() const { return snd_una_ != snd_max_ || queue_.size_bytes() > 0 || fin_due(); }
  // Whether the ACK in a data segment can be skipped: nothing is lost or suspected to be, and it
  // tells nothing new. Each segment of bulk that we receive repeats it, and is no answer to our
  // segments.
  bool has_heard(SeqNum ack, std::uint32_t window_bytes) const {
    return ack == snd_una_ && window_bytes == snd_wnd_bytes_ && window_bytes != 0 && is_plain() &&
           asked_ == kNever;
  }
  bool fin_acked() const { return fin_acked_; }
  bool is_in_flight(SeqNum seq) const {
    return seq.in_window(snd_una_, bytes_between(snd_una_, snd_max_));
  }
  // Payload of the oldest segment in flight; 0: none is in flight.
  std::uint32_t front_bytes() const { return scoreboard_.empty() ? 0 : scoreboard_.front().length; }
  bool full_size_delivered() const { return full_size_delivered_; }
  TimePoint progress() const { return progress_; }
  int backoff() const { return rtt_.backoff(); }
  const RttEstimator& rtt() const { return rtt_; }
  RttEstimator& rtt() { return rtt_; }
  // All round trips of data.
  const Histogram& rtts() const { return rtts_; }
  const Congestion& congestion() const { return congestion_; }
  // Rare events since the last call.
  struct News {
    bool control_changed = false;  // Another algorithm was chosen.
    bool path_congested = false;   // See MarkedRounds.
  };
  bool has_news() const { return news_.control_changed || news_.path_congested; }
  News take_news() { return std::exchange(news_, {}); }
  MarkedRounds& marked_rounds() { return marked_rounds_; }
  const SackScoreboard& scoreboard() const { return scoreboard_; }
  bool is_open() const { return state_ == State::kOpen; }
  // This half's part of the connection's statistics.
  void fill(ConnectionStatistics& out) const;

 private:
  // RFC 5681's and RFC 6582's phases: nothing lost, fast recovery, after an RTO.
  enum class State : std::uint8_t { kOpen, kRecovery, kLoss };
  // The segment that an ACK reports as received twice (RFC 2883): the tail loss probe, or another.
  enum class Dsack : std::uint8_t { kNone, kOfProbe, kOther };

  // Nothing lost, nothing sent twice, no holes reported.
  bool is_plain() const {
    return state_ == State::kOpen && !probe_outstanding_ && scoreboard_.sacked_bytes() == 0 &&
           scoreboard_.retransmitted_segments() == 0 && sack_;
  }
  bool fin_due() const { return fin_queued_ && !fin_acked_; }
  std::uint64_t offset(SeqNum seq) const { return queue_.begin() + bytes_between(snd_una_, seq); }
  // The FIN has a number but no byte.
  std::uint64_t unsent_bytes() const { return fin_sent_ ? 0 : queue_.end() - offset(snd_nxt_); }
  std::uint32_t usable_window() const;
  // RFC 9293 section 3.8.6.2.1: `usable` allows only a silly segment.
  bool is_silly(std::uint64_t unsent, std::uint32_t usable) const {
    return usable < std::min<std::uint64_t>(unsent, mss_bytes_) && usable < max_window_bytes_ / 2;
  }
  std::uint32_t flight_bytes() const {
    const std::uint32_t bytes = scoreboard_.in_flight_bytes();
    return bytes > presumed_bytes_ ? bytes - presumed_bytes_ : 0;
  }

  // The steps of on_ack(), in order. See sender_ack.cc.
  std::uint32_t take_cumulative(TimePoint now, const Ack& ack, Delivered& delivered);
  void take_sacks(const Ack& ack, Delivered& delivered, Dsack& dsack);
  Duration sample_rtt(TimePoint now, const Ack& ack, const Delivered& delivered, bool answers);
  bool undo_if_spurious(const Ack& ack, Dsack dsack, bool advanced);
  bool undo_by_frto(const Ack& ack, const Delivered& delivered, Dsack dsack, bool advanced);
  void undo_spurious(Dsack dsack);
  void undo_if_all_was_needless();
  void note_dsack(SeqNum begin, SeqNum end, bool of_probe);
  void detect_losses(TimePoint now);
  void count_duplicates(const Ack& ack, std::uint32_t acked_bytes, bool same_window,
                        Delivered& delivered);
  void check_tail_probe(const Ack& ack, Dsack dsack, bool advanced);
  void move_state(TimePoint now, const Ack& ack, const Delivered& delivered,
                  std::uint32_t acked_bytes, Duration rtt_sample, std::uint32_t ce_bytes);
  void tell_algorithm(TimePoint now, const Ack& ack, const Delivered& delivered,
                      std::uint32_t acked_bytes, Duration rtt_sample);
  void take_marks(TimePoint now, std::uint32_t acked_bytes, std::uint32_t ce_bytes);
  void note_rate(TimePoint now, std::uint32_t sent_bytes);
  void note_limit();
  void set_pace();
  void enter_recovery();
  void begin_episode();

  // The steps of next(), in the order it tries them.
  bool retransmit(TimePoint now, TxFrame& frame, Outgoing& out);
  bool send_tail_probe(TimePoint now, TxFrame& frame, Outgoing& out);
  bool send_new(TimePoint now, std::uint32_t limit_bytes, TxFrame& frame, Outgoing& out);
  bool send_fin(TimePoint now, Outgoing& out);
  void send_record(TimePoint now, std::uint32_t i, TxFrame& frame, Outgoing& out);
  std::uint32_t new_data_limit();

  // Effect of an event on the timers: none; new data is outstanding; an answer came, so they
  // restart.
  enum class Wait : std::uint8_t { kGoesOn, kIsForMore, kRestarts };
  ZTCP_UNPROTECTED void arm_timers(TimePoint now, Wait wait);
  Duration tail_probe_timeout() const;
  Duration longest_wait() const;
  Duration persist_interval() const;
  void note_repeated(std::uint32_t bytes) {
    counters_.tx_retransmitted_bytes += bytes;
    tally_.retransmitted_bytes += bytes;
  }
  void note_asked(TimePoint now) {
    if (asked_ == kNever) asked_ = now;
  }
  void note_shut_window(TimePoint now) {
    if (shut_since_ == kNever && unsent_bytes() != 0) shut_since_ = now;
  }
  TimePoint user_deadline() const {
    return std::max(progress_, heard_shut_) + settings_.user_timeout;
  }
  TimePoint give_up_at() const;
  void on_rto(TimePoint now);

  // --- Hot: touched for each segment or ACK.
  SeqNum snd_una_;
  SeqNum snd_nxt_;
  SeqNum snd_max_;  // snd_nxt_, except after lower_mss(), which moves snd_nxt_ back.
  std::uint32_t snd_wnd_bytes_ = 0;
  std::uint32_t mss_bytes_ = 0;
  std::uint32_t super_bytes_ = 0;  // Payload of a full super-segment; 0: none.
  // In flight for the scoreboard, but delivered according to duplicate ACKs of a peer without SACK.
  std::uint32_t presumed_bytes_ = 0;
  State state_ = State::kOpen;
  bool timestamps_ = false;
  bool sack_ = false;
  bool fin_queued_ = false;
  bool fin_sent_ = false;
  bool fin_acked_ = false;
  bool window_limited_ = false;  // The congestion window held back data at limited_end_.
  bool tail_probe_due_ = false;
  News news_;
  bool full_size_delivered_ = false;
  bool override_due_ = false;  // The waiting data may leave in a silly segment.
  SackScoreboard scoreboard_;
  SendQueue queue_;
  EcnFeedback ecn_;
  std::uint32_t marked_bytes_ = 0;  // Reported as marked since the last Congestion::on_ack().
  Congestion congestion_;
  Pacer pacer_;
  RttEstimator rtt_;
  TimePoint rto_deadline_ = kNever;
  TimePoint probe_deadline_ = kNever;    // Tail loss probe (RFC 8985 section 7).
  TimePoint reorder_deadline_ = kNever;  // RACK's reordering timer.
  TimePoint persist_deadline_ = kNever;  // RFC 9293 section 3.8.6.1.
  TimePoint progress_{};                 // When snd.una last moved, or data began to wait.
  // The first retransmission or probe since the peer was last heard; kNever: all were answered.
  TimePoint asked_ = kNever;
  SeqNum pace_round_end_;
  SeqNum limited_end_;  // The data in flight up to here filled the congestion window.

  // --- Cold.
  std::uint32_t max_window_bytes_ = 0;
  std::uint64_t told_lost_bytes_ = 0;  // The scoreboard's count at the algorithm's last ACK.
  DeliveryRate rate_;                  // For a rate-based algorithm.
  std::uint32_t duplicate_acks_ = 0;   // For peers without SACK.
  SeqNum recovery_point_;              // snd.max when the recovery began.
  MarkedRounds marked_rounds_;
  Rack rack_;
  // RFC 8985 section 7.3: the end of the outstanding tail loss probe.
  bool probe_outstanding_ = false;
  bool probe_retransmitted_ = false;
  SeqNum probe_end_;
  // Eifel (RFC 3522): an ACK that echoes an older timestamp than the first retransmission's was
  // caused by the original.
  bool undo_armed_ = false;
  bool undo_stamped_ = false;
  std::uint32_t undo_timestamp_ = 0;
  Frto frto_;
  // RFC 3708: bytes retransmitted since the first loss, less those that D-SACKs report. Once it is
  // zero, no retransmission was needed.
  bool needless_armed_ = false;
  std::uint32_t needed_bytes_ = 0;
  SeqNum episode_begin_;
  SeqNum repeated_end_;  // End of the retransmitted numbers.
  TimestampClock clock_;
  TimePoint heard_shut_{};  // The last ACK that found the window closed, or left it so.
  int persist_backoff_ = 0;
  Duration peer_ack_delay_{};  // See expect_late_acks().
  std::uint32_t max_super_bytes_ = 0;
  const TcpSettings& settings_;
  const Duration& rto_floor_;
  Counters& counters_;
  // This connection's share of the counters.
  struct Tally {
    std::uint64_t retransmitted_bytes = 0;
    std::uint64_t marked_bytes = 0;
    std::uint32_t timeouts = 0;
    std::uint32_t fast_recoveries = 0;
    std::uint32_t spurious_recoveries = 0;
    std::uint32_t dsacked_segments = 0;
    std::uint32_t reordered_segments = 0;
    std::uint32_t most_reordered_bytes = 0;
    std::uint32_t tail_probes = 0;
    std::uint32_t zero_windows = 0;
    std::uint32_t ecn_reductions = 0;
  } tally_;
  // Since when unsent bytes have waited for a closed window; kNever: none wait.
  TimePoint shut_since_ = kNever;
  Duration shut_time_{};  // Earlier such waits.
  Histogram rtts_;
};

}  // namespace ztcp::tcp
