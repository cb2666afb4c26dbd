// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The receiving half of a connection: which segments are acceptable, which bytes are delivered and
// which are held, and the contents of the next ACK (RFC 9293 section 3.10.7.4, RFC 7323, RFC 2018,
// RFC 2883). Owned by a Connection.
//
// The window is ordinary memory: the user takes every byte at once, so the right edge never moves
// back and never waits. It grows to twice the bytes that arrive in a round trip (dynamic
// right-sizing), since a smaller window limits the peer; it never shrinks. Its cost is the bytes
// that a peer can send beyond a lost segment, so the growth of all connections together is limited
// to the memory that the link can spare (HeldFrames).
#pragma once

#include <array>
#include <cassert>
#include <chrono>
#include <cstdint>
#include <span>

#include "core/clock.h"
#include "core/frame.h"
#include "transport/tcp/ecn_echo.h"
#include "transport/tcp/reassembly.h"
#include "transport/tcp/seq_num.h"
#include "transport/tcp/stack.h"
#include "transport/tcp/statistics.h"
#include "transport/tcp/timestamp_clock.h"
#include "transport/wire/frame_parser.h"

namespace ztcp::tcp {

class Receiver {
 public:
  struct Window {
    std::uint32_t bytes = 0;
    std::uint8_t scale = 0;
    std::uint16_t field = 0;  // bytes >> scale: the field in every segment but a SYN.
  };
  // RFC 7323 section 2.2. At least 8, so that there is room to grow; at most 10: no window here is
  // larger than 64 MiB. The scale suffices for growth to `most_bytes`.
  static Window choose_window(std::uint32_t bytes, std::uint32_t most_bytes = 0);

  Receiver(HeldFrames& frames, Counters& counters) : reassembly_(frames), counters_(counters) {}

  struct Terms {
    SeqNum next;  // IRS + 1.
    Window window;
    bool timestamps = false;
    std::uint32_t timestamp = 0;  // The SYN's.
    bool sack = false;
  };
  // `came_with`, `answers`: see EcnEcho.
  void begin_ecn(EcnMode mode, wire::Ecn came_with, bool answers) {
    ecn_.begin(mode, came_with, answers);
    if (answers) owe_ack();
  }
  void begin(TimePoint now, const Terms& terms);
  // Sets the full window, from the first ACK on: a SYN can offer at most 64 KiB.
  void open_window(const Window& window) { window_ = window; }
  void clear();

  // --- Right-sizing: measures the bytes that arrive in a round trip, now and then.
  //
  // From begin_measuring() on the window may grow to `most_bytes`.
  void begin_measuring(TimePoint now, std::uint32_t most_bytes);
  TimePoint next_measure() const { return next_measure_; }
  void measure(TimePoint now, Duration round_trip);

  SeqNum rcv_nxt() const { return rcv_nxt_; }
  const Window& window() const { return window_; }
  bool timestamps() const { return timestamps_; }
  std::uint32_t ts_recent() const { return ts_recent_; }

  // RFC 9293 section 3.4, the four cases. A zero-length segment may be at the window's end.
  bool is_acceptable(SeqNum seq, std::uint32_t length) const {
    if (length == 0) return seq.in_window(rcv_nxt_, window_.bytes + 1);
    return seq.in_window(rcv_nxt_, window_.bytes) ||
           (seq + (length - 1)).in_window(rcv_nxt_, window_.bytes);
  }
  // Below the window by less than a window: numbers that were right a moment ago.
  bool is_overtaken(SeqNum seq) const {
    return seq.in_window(rcv_nxt_ - window_.bytes, window_.bytes);
  }
  // RFC 7323 section 5.3, R1: false for an old duplicate.
  bool passes_paws(TimePoint now, std::uint32_t value) const {
    return !timestamp_before(value, ts_recent_) || is_timestamp_stale(now);
  }
  // Whether the ACK was overtaken by no more than networks reorder: 256 ticks, a quarter of a
  // millisecond of a microsecond clock, and Linux's limit for a millisecond clock.
  bool is_barely_old(std::uint32_t value) const {
    constexpr std::uint32_t kMostTicks = 256;
    return ts_recent_ - value <= kMostTicks;
  }
  // R3: only from segments that cover the last ACK sent.
  void note_timestamp(TimePoint now, SeqNum seq, std::uint32_t value) {
    if (seq.at_or_before(last_ack_sent_) && passes_paws(now, value)) {
      ts_recent_ = value;
      ts_recent_time_ = now;
    }
  }

  // An acceptable segment's payload, whole or trimmed to the window. In-order bytes go to
  // sink(span) at once, with the held bytes that they release; sink returns false when the
  // connection has ended, and then nothing here may be touched. Returns false in that case.
  template <class Sink>
  bool on_payload(RxFrame& frame, SeqNum seq, std::uint32_t offset, std::uint32_t length,
                  Sink&& sink);

  // Before on_payload(): the segment's congestion mark and flags.
  void note_ecn(wire::Ecn ecn, wire::TcpFlags flags, std::uint32_t payload_bytes) {
    if (!ecn_.count(ecn, payload_bytes)) [[likely]]
      return;
    if (ecn == wire::Ecn::kCongestion) ++counters_.rx_ce_segments;
    ecn_.on_segment(ecn, flags);
  }

  // A segment without new bytes (RFC 2883 section 4.1.1): the next ACK reports it.
  void on_duplicate(SeqNum seq, std::uint32_t length) {
    ++counters_.rx_duplicate;
    ++duplicate_segments_;
    note_duplicate({seq.raw(), (seq + length).raw()});
    owe_ack();
  }

  // `seq`: the number after the peer's FIN. Kept until all bytes before it have arrived.
  void note_fin(SeqNum seq) {
    fin_known_ = true;
    fin_ = seq;
  }
  bool fin_is_next() const { return fin_known_ && fin_ == rcv_nxt_; }
  void take_fin() {
    fin_known_ = false;
    rcv_nxt_ = rcv_nxt_ + 1;
    ack_due_ = true;
  }

  // --- The next ACK
  // Flags of each segment that is sent.
  wire::TcpFlags ecn_flags() const { return ecn_.flags(); }
  bool ack_due() const { return ack_due_; }
  void request_ack() { ack_due_ = true; }
  // Whether an ACK without payload is needed: it carries SACK blocks or ECN's counters.
  bool has_report() const { return has_sack() || ecn_.has_report(); }
  bool has_sack() const { return sack_ && (duplicate_count_ > 0 || !reassembly_.empty()); }
  // Whether further ACKs are needed because one could not carry all reports. At most one ACK for
  // each segment that had something to report (RFC 5681 section 4.2).
  bool has_unreported() const {
    return acks_owed_ > 0 && sack_ &&
           (duplicate_count_ > 0 || (!reassembly_.empty() && reassembly_.has_unreported()));
  }
  // The options of an ACK with reports. SACK blocks take precedence (RFC 9768 section 3.2.3.3).
  void take_reports(wire::TcpOptions& options);
  std::uint8_t take_sack_blocks(std::span<wire::SackBlock> out);
  void on_ack_sent() {
    ack_due_ = false;
    if (acks_owed_ > 0) [[unlikely]] {
      --acks_owed_;
      ecn_.end_handshake();
    }
    last_ack_sent_ = rcv_nxt_;
  }

  const Reassembly& reassembly() const { return reassembly_; }
  // This half's part of the connection's statistics.
  void fill(ConnectionStatistics& out) const {
    out.received_bytes = received_bytes_;
    out.own_window_bytes = window_.bytes;
    out.out_of_order_segments = out_of_order_segments_;
    out.duplicate_segments = duplicate_segments_;
  }

 private:
  // Duplicate ranges of one burst; further ones are not reported.
  static constexpr std::uint8_t kMaxDuplicates = 4;
  // A segment arrived that the next ACK must report.
  void owe_ack() {
    ack_due_ = true;
    ++acks_owed_;
  }
  // Adjacent blocks are merged: the peer counts needless retransmissions by them (RFC 3708).
  void note_duplicate(const wire::SackBlock& block) {
    if (duplicate_count_ > 0 && duplicates_[duplicate_count_ - 1U].end == block.begin)
      duplicates_[duplicate_count_ - 1U].end = block.end;
    else if (duplicate_count_ < kMaxDuplicates)
      duplicates_[duplicate_count_++] = block;
  }

  // RFC 7323 section 5.5: an old TS.Recent proves nothing. The RFC's 24 days are for a millisecond
  // tick; this is a third of half the range at a microsecond, the fastest tick in use.
  static constexpr Duration kTimestampValidity = std::chrono::minutes(12);
  bool is_timestamp_stale(TimePoint now) const {
    return now - ts_recent_time_ > kTimestampValidity;
  }

  SeqNum rcv_nxt_;
  SeqNum last_ack_sent_;
  std::uint32_t ts_recent_ = 0;
  Window window_;
  bool timestamps_ = false;
  bool sack_ = false;
  bool ack_due_ = false;
  bool fin_known_ = false;
  EcnEcho ecn_;
  SeqNum fin_;
  TimePoint ts_recent_time_{};
  std::uint8_t duplicate_count_ = 0;
  std::uint32_t acks_owed_ = 0;  // Segments to report that no ACK has followed yet.
  std::array<wire::SackBlock, kMaxDuplicates> duplicates_;
  Reassembly reassembly_;
  Counters& counters_;
  // Time of the next measurement: once in a round trip, at most once per kMeasureInterval.
  static constexpr Duration kMeasureInterval = std::chrono::milliseconds(1);
  TimePoint next_measure_ = kNever;
  TimePoint measured_{};
  std::uint64_t measured_bytes_ = 0;
  std::uint32_t most_window_bytes_ = 0;
  std::uint32_t promised_bytes_ = 0;  // Granted by HeldFrames for the growth.
  // This connection's share of the counters.
  std::uint64_t received_bytes_ = 0;
  std::uint32_t out_of_order_segments_ = 0;
  std::uint32_t duplicate_segments_ = 0;
};

template <class Sink>
bool Receiver::on_payload(RxFrame& frame, SeqNum seq, std::uint32_t offset, std::uint32_t length,
                          Sink&& sink) {
  ack_due_ = true;
  bool is_reported = false;  // RFC 2883 section 4: the first duplicate part of a segment.
  if (seq.before(rcv_nxt_)) [[unlikely]] {
    const std::uint32_t old = bytes_between(seq, rcv_nxt_);
    if (old >= length) {
      on_duplicate(seq, length);
      return true;
    }
    owe_ack();
    note_duplicate({seq.raw(), rcv_nxt_.raw()});
    is_reported = true;
    seq = rcv_nxt_;
    offset += old;
    length -= old;
  }
  assert(bytes_between(rcv_nxt_, seq) <= window_.bytes);  // Otherwise it were not acceptable.
  const std::uint32_t room = window_.bytes - bytes_between(rcv_nxt_, seq);
  if (length > room) length = room;

  if (seq != rcv_nxt_) [[unlikely]] {
    wire::SackBlock twice;
    switch (reassembly_.insert(frame, seq, offset, length, twice)) {
      case Reassembly::Outcome::kHeld:
        ++counters_.rx_out_of_order;
        ++out_of_order_segments_;
        break;
      case Reassembly::Outcome::kDuplicate:
        ++counters_.rx_duplicate;
        ++duplicate_segments_;
        break;
      case Reassembly::Outcome::kNoMemory:
        ++(reassembly_.frames().has_enough_of_others(frame) ? counters_.rx_dropped_of_others
                                                            : counters_.rx_dropped_no_memory);
        break;
    }
    if (!is_reported) ++acks_owed_;
    if (twice.begin != twice.end && !is_reported) note_duplicate(twice);
    return true;
  }

  bool alive = true;
  const auto give = [&](std::span<const std::byte> piece) {
    if (alive) alive = sink(piece);
  };
  rcv_nxt_ = seq + length;
  counters_.rx_bytes += length;
  received_bytes_ += length;
  reassembly_.frames().show(frame);
  wire::for_each_piece(frame, offset, length, give);
  if (!alive) [[unlikely]]
    return false;
  if (reassembly_.empty()) [[likely]]
    return true;
  if (!is_reported) {
    ++acks_owed_;
    if (const auto held = reassembly_.first_before(rcv_nxt_))
      note_duplicate({held->begin, earlier(SeqNum(held->end), rcv_nxt_).raw()});
  }

  // rcv.nxt moves before the bytes are delivered, as above.
  Counters& counters = counters_;
  std::uint64_t& received = received_bytes_;
  SeqNum& next = rcv_nxt_;
  const SeqNum reached = reassembly_.deliver(
      next, [&](const RxFrame& held, std::uint32_t held_offset, std::uint32_t held_bytes) {
        next = next + held_bytes;
        counters.rx_bytes += held_bytes;
        received += held_bytes;
        wire::for_each_piece(held, held_offset, held_bytes, give);
        return alive;
      });
  if (alive) rcv_nxt_ = reached;
  return alive;
}

}  // namespace ztcp::tcp
