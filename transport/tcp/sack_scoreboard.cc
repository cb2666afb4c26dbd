// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/sack_scoreboard.h"

#include <algorithm>

namespace ztcp::tcp {

void SackScoreboard::reset(SeqNum first) {
  head_ = tail_ = lost_hint_ = 0;
  outstanding_bytes_ = sacked_bytes_ = lost_bytes_ = 0;
  sacked_segments_ = retransmitted_segments_ = 0;
  forward_ack_ = walked_begin_ = walked_end_ = first;
}

void SackScoreboard::deliver(const SentRecord& record, std::uint32_t full_bytes,
                             Delivered& delivered) {
  delivered.bytes += record.length;
  if (record.length >= full_bytes) delivered.full_sized = true;
  const bool retransmitted = record.is(SentRecord::kRetransmitted);
  // RFC 8985 section 6.2: later in time, or as late and further in sequence space.
  if (!delivered.any || record.sent > delivered.newest_sent ||
      (record.sent == delivered.newest_sent && record.end().after(delivered.newest_end))) {
    delivered.any = true;
    delivered.newest_sent = record.sent;
    delivered.newest_end = record.end();
    delivered.newest_retransmitted = retransmitted;
  }
  if (!retransmitted && (!delivered.has_rtt_sample || record.sent > delivered.rtt_sent)) {
    delivered.has_rtt_sample = true;
    delivered.rtt_sent = record.sent;
  }
  if (record.end().after(forward_ack_)) {
    forward_ack_ = record.end();
  } else if (!retransmitted && record.end().before(forward_ack_)) {
    delivered.reordered = true;
  }
}

void SackScoreboard::acknowledge(SeqNum una, std::uint32_t full_bytes, Delivered& delivered) {
  while (head_ != tail_) {
    SentRecord& record = records_[head_ & mask_];
    if (record.end().after(una)) {
      // Peers acknowledge what they hold, and that may end inside what we sent as one.
      if (record.seq.before(una)) {
        const auto gone = static_cast<std::uint16_t>(bytes_between(record.seq, una));
        if (!record.is(SentRecord::kSacked)) delivered.bytes += gone;
        if (record.is(SentRecord::kSacked)) sacked_bytes_ -= gone;
        if (record.is(SentRecord::kLost)) lost_bytes_ -= gone;
        outstanding_bytes_ -= gone;
        record.seq = una;
        record.length = static_cast<std::uint16_t>(record.length - gone);
      }
      break;
    }
    outstanding_bytes_ -= record.length;
    if (record.is(SentRecord::kSacked)) {
      sacked_bytes_ -= record.length;
      --sacked_segments_;
    } else {
      deliver(record, full_bytes, delivered);
    }
    if (record.is(SentRecord::kLost)) lost_bytes_ -= record.length;
    if (record.is(SentRecord::kRetransmitted)) --retransmitted_segments_;
    ++head_;
  }
  if (una.after(forward_ack_)) forward_ack_ = una;
  if (una.after(walked_end_)) walked_begin_ = walked_end_ = una;
  // Hints are free-running and must not fall behind the head by half the number space.
  if (static_cast<std::int32_t>(lost_hint_ - head_) < 0) lost_hint_ = head_;
}

std::uint32_t SackScoreboard::find(SeqNum seq) const {
  std::uint32_t low = 0;
  std::uint32_t high = size();
  while (low < high) {  // The first record that ends after seq.
    const std::uint32_t middle = low + (high - low) / 2;
    if ((*this)[middle].end().after(seq))
      high = middle;
    else
      low = middle + 1;
  }
  if (low < size() && (*this)[low].seq.after(seq)) return size();
  return low;
}

void SackScoreboard::sack(SeqNum begin, SeqNum end, std::uint32_t full_bytes,
                          Delivered& delivered) {
  if (empty()) return;
  begin = later(begin, front().seq);
  end = earlier(end, back().end());
  if (!begin.before(end)) return;
  SeqNum walk_from = begin;
  if (walked_begin_.at_or_before(begin) && begin.at_or_before(walked_end_)) {
    if (end.at_or_before(walked_end_)) return;
    walk_from = walked_end_;
  } else {
    walked_begin_ = begin;
  }
  walked_end_ = walk_from;
  for (std::uint32_t i = find(walk_from); i < size(); ++i) {
    SentRecord& record = at(i);
    if (record.end().after(end)) break;
    if (record.seq.before(begin)) continue;
    walked_end_ = record.end();
    if (record.is(SentRecord::kSacked)) continue;
    deliver(record, full_bytes, delivered);
    delivered.bytes_sacked += record.length;
    if (record.is(SentRecord::kLost)) lost_bytes_ -= record.length;
    record.flags = static_cast<std::uint8_t>((record.flags | SentRecord::kSacked) &
                                             ~unsigned{SentRecord::kLost});
    sacked_bytes_ += record.length;
    ++sacked_segments_;
  }
}

void SackScoreboard::mark_lost(std::uint32_t i) {
  SentRecord& record = at(i);
  assert(!record.is(SentRecord::kSacked) && !record.is(SentRecord::kLost));
  record.flags |= SentRecord::kLost;
  lost_bytes_ += record.length;
  const std::uint32_t position = head_ + i;
  if (static_cast<std::int32_t>(position - lost_hint_) < 0) lost_hint_ = position;
}

void SackScoreboard::mark_retransmitted(std::uint32_t i, TimePoint now) {
  SentRecord& record = at(i);
  if (record.is(SentRecord::kLost)) lost_bytes_ -= record.length;
  if (!record.is(SentRecord::kRetransmitted)) ++retransmitted_segments_;
  record.flags = static_cast<std::uint8_t>((record.flags | SentRecord::kRetransmitted) &
                                           ~unsigned{SentRecord::kLost});
  record.sent = now;
  if (record.transmissions != UINT8_MAX) ++record.transmissions;
}

void SackScoreboard::forget_losses() {
  for (std::uint32_t i = 0; i < size() && lost_bytes_ > 0; ++i) {
    SentRecord& record = at(i);
    if (!record.is(SentRecord::kLost)) continue;
    record.flags = static_cast<std::uint8_t>(record.flags & ~unsigned{SentRecord::kLost});
    lost_bytes_ -= record.length;
  }
  lost_hint_ = tail_;
}

void SackScoreboard::forget_sacks() {
  for (std::uint32_t i = 0; i < size(); ++i) {
    SentRecord& record = at(i);
    record.flags = static_cast<std::uint8_t>(record.flags & ~unsigned{SentRecord::kSacked});
  }
  sacked_bytes_ = sacked_segments_ = 0;
  if (!empty()) walked_begin_ = walked_end_ = forward_ack_ = front().seq;
}

void SackScoreboard::rewind(SeqNum una) { reset(una); }

std::uint32_t SackScoreboard::first_lost() {
  assert(lost_bytes_ > 0);
  while (!records_[lost_hint_ & mask_].is(SentRecord::kLost)) {
    ++lost_hint_;
    assert(static_cast<std::int32_t>(tail_ - lost_hint_) > 0);
  }
  return lost_hint_ - head_;
}

bool SackScoreboard::is_consistent() const {
  std::uint32_t outstanding = 0;
  std::uint32_t sacked = 0;
  std::uint32_t sacked_count = 0;
  std::uint32_t lost = 0;
  std::uint32_t retransmitted = 0;
  for (std::uint32_t i = 0; i < size(); ++i) {
    const SentRecord& record = (*this)[i];
    if (i > 0 && (*this)[i - 1].end() != record.seq) return false;
    if (record.is(SentRecord::kSacked) && record.is(SentRecord::kLost)) return false;
    outstanding += record.length;
    if (record.is(SentRecord::kSacked)) sacked += record.length, ++sacked_count;
    if (record.is(SentRecord::kLost)) lost += record.length;
    if (record.is(SentRecord::kRetransmitted)) ++retransmitted;
  }
  return outstanding == outstanding_bytes_ && sacked == sacked_bytes_ &&
         sacked_count == sacked_segments_ && lost == lost_bytes_ &&
         retransmitted == retransmitted_segments_;
}

}  // namespace ztcp::tcp
