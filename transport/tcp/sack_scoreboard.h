// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What is in flight, segment by segment: when each was last sent, and whether it has been
// selectively acknowledged, deemed lost, or sent again (the bookkeeping of RFC 6675 and RFC 8985).
// A ring in sequence order over memory of the Stack, so it is bounded and never allocates. Owned
// by a Sender.
//
// SACKed bytes are kept until they are acknowledged cumulatively: the peer may renege (RFC 2018
// section 8).
//
// An ACK costs as much as it brings news of, however many segments are in flight: SACKed ones are
// passed over by the run, those sent once stand in the order of their times anyway, and those sent
// again are linked in theirs.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

#include "transport/core/clock.h"
#include "transport/tcp/seq_num.h"

namespace ztcp::tcp {

struct SentRecord {
  enum Flag : std::uint8_t {
    kSacked = 1,
    kLost = 2,           // Deemed lost and not sent again since.
    kRetransmitted = 4,  // Sent more than once: no RTT from it without timestamps (Karn).
    kFin = 8,            // The FIN: one sequence number, no payload.
  };
  TimePoint sent;  // The latest transmission.
  SeqNum seq;
  std::uint16_t length = 0;
  std::uint8_t flags = 0;
  // Positions in the ring. While it is SACKed: everything before `newer` is, too. While it is under
  // way again: its neighbours in the order of sending.
  std::uint32_t older = 0;
  std::uint32_t newer = 0;

  SeqNum end() const { return seq + length; }
  bool is(Flag flag) const { return (flags & flag) != 0; }
};
static_assert(sizeof(SentRecord) == 24);

// What one ACK newly reports as delivered, cumulatively or selectively.
struct Delivered {
  std::uint32_t bytes = 0;
  std::uint32_t bytes_sacked = 0;  // Of `bytes`, those reported by SACK blocks.
  // The delivered segment that was sent last (RFC 8985 section 6.2 step 2).
  bool any = false;
  bool newest_retransmitted = false;
  bool any_retransmitted = false;
  TimePoint newest_sent{};
  SeqNum newest_end;
  // The delivered segment sent last among those sent once: a clean RTT sample.
  bool has_rtt_sample = false;
  TimePoint rtt_sent{};
  // A segment never retransmitted was delivered after one with a higher number (step 3).
  bool reordered = false;
  std::uint32_t reordered_bytes = 0;  // At most by so many.
  bool full_sized = false;            // One of at least `full_bytes` (see SackScoreboard) arrived.
};

class SackScoreboard {
 public:
  // `ring` has a power of two of records and outlives this.
  explicit SackScoreboard(std::span<SentRecord> ring)
      : records_(ring.data()), mask_(static_cast<std::uint32_t>(ring.size() - 1)) {
    assert((ring.size() & (ring.size() - 1)) == 0 && !ring.empty());
  }

  void reset(SeqNum first);

  bool empty() const { return head_ == tail_; }
  bool full() const { return tail_ - head_ > mask_; }
  std::uint32_t size() const { return tail_ - head_; }
  std::uint32_t space() const { return mask_ + 1 - size(); }

  // i in [0, size()), oldest first.
  const SentRecord& operator[](std::uint32_t i) const { return records_[(head_ + i) & mask_]; }
  const SentRecord& front() const { return (*this)[0]; }
  const SentRecord& back() const { return (*this)[size() - 1]; }

  // Sent at the end; `seq` follows the last record.
  void push(SeqNum seq, std::uint16_t length, TimePoint now, std::uint8_t flags = 0) {
    assert(!full() && length > 0);
    assert(empty() || back().end() == seq);
    record(tail_) = {now, seq, length, flags};
    outstanding_bytes_ += length;
    if ((flags & SentRecord::kRetransmitted) != 0) {
      ++retransmitted_segments_;
      link(tail_);
    }
    ++tail_;
  }

  // Everything before `una` has been delivered; `full_bytes` is what a full-sized segment is.
  void acknowledge(SeqNum una, std::uint32_t full_bytes, Delivered& delivered);
  // One SACK block: of valid numbers, not below the cumulative ACK. Segments partly covered stay.
  void sack(SeqNum begin, SeqNum end, std::uint32_t full_bytes, Delivered& delivered);

  void mark_lost(std::uint32_t i);
  void mark_retransmitted(std::uint32_t i, TimePoint now);
  // Takes all losses back: they were reordering or delay (RFC 4015).
  void forget_losses();
  // The peer threw away what it had SACKed: those bytes are under way again.
  void forget_sacks();
  // Forgets all records, to send [una, snd.nxt) anew cut to another size.
  void rewind(SeqNum una);

  // The oldest lost record; only while lost_bytes() > 0.
  std::uint32_t first_lost();

  // What is under way, neither SACKed nor lost, in the order it was sent: apart, what was sent once
  // and what was sent again. The first one sent once at or behind i, or size().
  std::uint32_t first_once();
  std::uint32_t next_once(std::uint32_t i) { return skip_to_once(head_ + i) - head_; }
  // There are under_way_again() of them.
  std::uint32_t under_way_again() const { return repeats_; }
  std::uint32_t first_again() const { return first_repeat_ - head_; }
  std::uint32_t next_again(std::uint32_t i) const { return (*this)[i].newer - head_; }

  std::uint32_t outstanding_bytes() const { return outstanding_bytes_; }
  std::uint32_t sacked_bytes() const { return sacked_bytes_; }
  std::uint32_t sacked_segments() const { return sacked_segments_; }
  std::uint32_t lost_bytes() const { return lost_bytes_; }
  std::uint32_t retransmitted_segments() const { return retransmitted_segments_; }
  // "pipe" of RFC 6675 section 4.
  std::uint32_t in_flight_bytes() const { return outstanding_bytes_ - sacked_bytes_ - lost_bytes_; }
  // The highest sequence number known delivered (RFC 8985's RACK.fack).
  SeqNum forward_ack() const { return forward_ack_; }

  // The record that holds `seq`, or size().
  std::uint32_t find(SeqNum seq) const;

  // Recounts everything; for assert().
  bool is_consistent() const;

 private:
  static bool is_under_way_again(const SentRecord& record) {
    return (record.flags & (SentRecord::kSacked | SentRecord::kLost |
                            SentRecord::kRetransmitted)) == SentRecord::kRetransmitted;
  }
  SentRecord& record(std::uint32_t position) { return records_[position & mask_]; }
  bool is_before_tail(std::uint32_t position) const {
    return static_cast<std::int32_t>(tail_ - position) > 0;
  }
  std::uint32_t past_sacked(std::uint32_t position);
  std::uint32_t skip_to_once(std::uint32_t position);
  void link(std::uint32_t position);
  void unlink(std::uint32_t position);
  void link_all_again();
  void deliver(const SentRecord& record, std::uint32_t full_bytes, Delivered& delivered);

  SentRecord* records_;
  std::uint32_t mask_;
  std::uint32_t head_ = 0;  // Free-running.
  std::uint32_t tail_ = 0;
  std::uint32_t outstanding_bytes_ = 0;
  std::uint32_t sacked_bytes_ = 0;
  std::uint32_t lost_bytes_ = 0;
  std::uint32_t sacked_segments_ = 0;
  std::uint32_t retransmitted_segments_ = 0;  // Outstanding ones.
  // Free-running, as all positions are.
  std::uint32_t lost_hint_ = 0;  // Nothing lost lies before it.
  std::uint32_t once_hint_ = 0;  // Nor here anything sent once and under way.
  std::uint32_t repeats_ = 0;    // Under way again: a list from the first sent to the last.
  std::uint32_t first_repeat_ = 0;
  std::uint32_t last_repeat_ = 0;
  SeqNum forward_ack_;
};

}  // namespace ztcp::tcp
