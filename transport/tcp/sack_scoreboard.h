// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The segments in flight: when each was last sent, and whether it was selectively acknowledged,
// deemed lost, or sent again (the bookkeeping of RFC 6675 and RFC 8985). A ring in sequence order
// over memory of the Stack, so it is bounded and never allocates. Owned by a Sender.
//
// SACKed bytes are kept until they are acknowledged cumulatively: the peer may renege (RFC 2018
// section 8).
//
// The cost of an ACK depends on the segments it newly reports, not on the number in flight: runs of
// SACKed segments are skipped as a whole, segments sent once are in the order of their send times
// anyway, and segments sent again are linked in that order.
#pragma once

#include <cassert>
#include <cstddef>
#include <cstdint>
#include <span>

#include "core/clock.h"
#include "transport/tcp/seq_num.h"

namespace ztcp::tcp {

struct SentRecord {
  enum Flag : std::uint8_t {
    kSacked = 1,
    kLost = 2,           // Deemed lost and not sent again since.
    kRetransmitted = 4,  // Sent more than once: no RTT from it without timestamps (Karn).
    kFin = 8,            // The FIN: one sequence number, no payload.
  };
  TimePoint sent;  // Time of the latest transmission.
  SeqNum seq;
  std::uint16_t length = 0;
  std::uint8_t flags = 0;
  // Positions in the ring. In a SACKed record, all records before `newer` are SACKed, too. In one
  // that was sent again and is outstanding, its neighbours in the order of sending.
  std::uint32_t older = 0;
  std::uint32_t newer = 0;

  SeqNum end() const { return seq + length; }
  bool is(Flag flag) const { return (flags & flag) != 0; }
};
static_assert(sizeof(SentRecord) == 24);

// The bytes that one ACK newly reports as delivered, cumulatively or selectively.
struct Delivered {
  std::uint32_t bytes = 0;
  std::uint32_t bytes_sacked = 0;  // The part of `bytes` that SACK blocks reported.
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
  std::uint32_t reordered_bytes = 0;  // By at most this much.
  bool full_sized = false;            // One of at least `full_bytes` (see SackScoreboard) arrived.
};

class SackScoreboard {
 public:
  // `ring` has a power of two of records and must outlive this.
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

  // Adds a segment that was just sent; `seq` follows the last record.
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

  // Everything before `una` has been delivered; `full_bytes` is the size of a full-sized segment.
  void acknowledge(SeqNum una, std::uint32_t full_bytes, Delivered& delivered);
  // One SACK block, valid and not below the cumulative ACK. Segments covered in part are unchanged.
  void sack(SeqNum begin, SeqNum end, std::uint32_t full_bytes, Delivered& delivered);

  void mark_lost(std::uint32_t i);
  void mark_retransmitted(std::uint32_t i, TimePoint now);
  // Unmarks all losses: they were reordering or delay (RFC 4015).
  void forget_losses();
  // The peer dropped bytes that it had SACKed: they are outstanding again.
  void forget_sacks();
  // Drops all records, so that [una, snd.nxt) can be sent again in segments of another size.
  void rewind(SeqNum una);

  // The oldest lost record; only while lost_bytes() > 0.
  std::uint32_t first_lost();

  // Outstanding segments, neither SACKed nor lost, in the order of sending; those sent once and
  // those sent again have separate lists. The first one sent once at or after i, or size().
  std::uint32_t first_once();
  std::uint32_t next_once(std::uint32_t i) { return skip_to_once(head_ + i) - head_; }
  // The second list has under_way_again() entries.
  std::uint32_t under_way_again() const { return repeats_; }
  std::uint32_t first_again() const { return first_repeat_ - head_; }
  std::uint32_t next_again(std::uint32_t i) const { return (*this)[i].newer - head_; }

  std::uint32_t outstanding_bytes() const { return outstanding_bytes_; }
  std::uint32_t sacked_bytes() const { return sacked_bytes_; }
  std::uint32_t sacked_segments() const { return sacked_segments_; }
  std::uint32_t lost_bytes() const { return lost_bytes_; }
  // Marked as lost since the connection began, however often and however rightly.
  std::uint64_t ever_lost_bytes() const { return ever_lost_bytes_; }
  std::uint32_t retransmitted_segments() const { return retransmitted_segments_; }
  // "pipe" of RFC 6675 section 4.
  std::uint32_t in_flight_bytes() const { return outstanding_bytes_ - sacked_bytes_ - lost_bytes_; }
  // The highest sequence number known delivered (RFC 8985's RACK.fack).
  SeqNum forward_ack() const { return forward_ack_; }

  // Index of the record that holds `seq`, or size().
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
  std::uint64_t ever_lost_bytes_ = 0;
  std::uint32_t sacked_segments_ = 0;
  std::uint32_t retransmitted_segments_ = 0;  // Among the outstanding ones.
  // Free-running, like all positions.
  std::uint32_t lost_hint_ = 0;  // No lost record lies before it.
  std::uint32_t once_hint_ = 0;  // No outstanding record sent once lies before it.
  std::uint32_t repeats_ = 0;    // Size of the list of outstanding records sent again, in the order
                                 // of sending.
  std::uint32_t first_repeat_ = 0;
  std::uint32_t last_repeat_ = 0;
  SeqNum forward_ack_;
};

}  // namespace ztcp::tcp
