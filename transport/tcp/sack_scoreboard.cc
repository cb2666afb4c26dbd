// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/tcp/sack_scoreboard.h"

#include <algorithm>

namespace ztcp::tcp {

void SackScoreboard::reset(SeqNum first) {
  head_ = tail_ = lost_hint_ = once_hint_ = 0;
  outstanding_bytes_ = sacked_bytes_ = lost_bytes_ = 0;
  sacked_segments_ = retransmitted_segments_ = repeats_ = 0;
  ever_lost_bytes_ = 0;
  forward_ack_ = first;
}

// Appends: this segment was sent last.
void SackScoreboard::link(std::uint32_t position) {
  if (repeats_++ == 0) {
    first_repeat_ = last_repeat_ = position;
    return;
  }
  record(last_repeat_).newer = position;
  record(position).older = last_repeat_;
  last_repeat_ = position;
}

void SackScoreboard::unlink(std::uint32_t position) {
  assert(repeats_ > 0);
  const SentRecord& gone = record(position);
  if (--repeats_ == 0) return;
  if (position == first_repeat_)
    first_repeat_ = gone.newer;
  else
    record(gone.older).newer = gone.newer;
  if (position == last_repeat_)
    last_repeat_ = gone.older;
  else
    record(gone.newer).older = gone.older;
}

// To be called after many segments have become outstanding again at once. Most were sent in the
// order of their numbers.
void SackScoreboard::link_all_again() {
  repeats_ = 0;
  once_hint_ = head_;
  for (std::uint32_t position = head_; position != tail_; ++position) {
    SentRecord& added = record(position);
    if (!is_under_way_again(added)) continue;
    std::uint32_t newer = position;  // Itself: none found yet.
    std::uint32_t older = last_repeat_;
    std::uint32_t left = repeats_;
    for (; left > 0 && record(older).sent > added.sent; --left) {
      newer = older;
      older = record(older).older;
    }
    if (newer == position) {
      link(position);
      continue;
    }
    ++repeats_;
    added.newer = newer;
    record(newer).older = position;
    if (left == 0) {
      first_repeat_ = position;
    } else {
      added.older = older;
      record(older).newer = position;
    }
  }
}

// The first position at or after `position` that is not SACKed. Shortens the chain for the next
// call.
std::uint32_t SackScoreboard::past_sacked(std::uint32_t position) {
  std::uint32_t end = position;
  while (is_before_tail(end) && record(end).is(SentRecord::kSacked)) end = record(end).newer;
  while (position != end) {
    const std::uint32_t next = record(position).newer;
    record(position).newer = end;
    position = next;
  }
  return end;
}

std::uint32_t SackScoreboard::skip_to_once(std::uint32_t position) {
  while (is_before_tail(position)) {
    const SentRecord& at = record(position);
    if (at.is(SentRecord::kSacked))
      position = past_sacked(position);
    else if (at.is(SentRecord::kLost) || at.is(SentRecord::kRetransmitted))
      ++position;
    else
      break;
  }
  return position;
}

std::uint32_t SackScoreboard::first_once() {
  once_hint_ = skip_to_once(once_hint_);
  return once_hint_ - head_;
}

void SackScoreboard::deliver(const SentRecord& record, std::uint32_t full_bytes,
                             Delivered& delivered) {
  delivered.bytes += record.length;
  if (record.length >= full_bytes) delivered.full_sized = true;
  const bool retransmitted = record.is(SentRecord::kRetransmitted);
  if (retransmitted) delivered.any_retransmitted = true;
  // RFC 8985 section 6.2: sent later, or at the same time and with a higher number.
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
    delivered.reordered_bytes =
        std::max(delivered.reordered_bytes, bytes_between(record.end(), forward_ack_));
  }
}

void SackScoreboard::acknowledge(SeqNum una, std::uint32_t full_bytes, Delivered& delivered) {
  while (head_ != tail_) {
    SentRecord& oldest = record(head_);
    if (oldest.end().after(una)) {
      // A peer may acknowledge a part of a segment: it ACKs the bytes it holds.
      if (oldest.seq.before(una)) {
        const auto gone = static_cast<std::uint16_t>(bytes_between(oldest.seq, una));
        if (!oldest.is(SentRecord::kSacked)) delivered.bytes += gone;
        if (oldest.is(SentRecord::kSacked)) sacked_bytes_ -= gone;
        if (oldest.is(SentRecord::kLost)) lost_bytes_ -= gone;
        outstanding_bytes_ -= gone;
        oldest.seq = una;
        oldest.length = static_cast<std::uint16_t>(oldest.length - gone);
      }
      break;
    }
    outstanding_bytes_ -= oldest.length;
    if (oldest.is(SentRecord::kSacked)) {
      sacked_bytes_ -= oldest.length;
      --sacked_segments_;
    } else {
      deliver(oldest, full_bytes, delivered);
    }
    if (oldest.is(SentRecord::kLost)) lost_bytes_ -= oldest.length;
    if (oldest.is(SentRecord::kRetransmitted)) --retransmitted_segments_;
    if (is_under_way_again(oldest)) unlink(head_);
    ++head_;
  }
  if (una.after(forward_ack_)) forward_ack_ = una;
  // Hints are free-running and must not fall behind the head by half the number space.
  if (static_cast<std::int32_t>(lost_hint_ - head_) < 0) lost_hint_ = head_;
  if (static_cast<std::int32_t>(once_hint_ - head_) < 0) once_hint_ = head_;
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
  for (std::uint32_t position = head_ + find(begin); is_before_tail(position);) {
    SentRecord& at = record(position);
    if (at.end().after(end)) break;
    if (at.is(SentRecord::kSacked)) {
      position = past_sacked(position);
      continue;
    }
    if (!at.seq.before(begin)) {
      deliver(at, full_bytes, delivered);
      delivered.bytes_sacked += at.length;
      if (at.is(SentRecord::kLost)) lost_bytes_ -= at.length;
      if (is_under_way_again(at)) unlink(position);
      at.flags = static_cast<std::uint8_t>((at.flags | SentRecord::kSacked) &
                                           ~unsigned{SentRecord::kLost});
      at.newer = position + 1;
      sacked_bytes_ += at.length;
      ++sacked_segments_;
    }
    ++position;
  }
}

void SackScoreboard::mark_lost(std::uint32_t i) {
  const std::uint32_t position = head_ + i;
  SentRecord& lost = record(position);
  assert(!lost.is(SentRecord::kSacked) && !lost.is(SentRecord::kLost));
  if (is_under_way_again(lost)) unlink(position);
  lost.flags |= SentRecord::kLost;
  lost_bytes_ += lost.length;
  ever_lost_bytes_ += lost.length;
  if (static_cast<std::int32_t>(position - lost_hint_) < 0) lost_hint_ = position;
}

void SackScoreboard::mark_retransmitted(std::uint32_t i, TimePoint now) {
  const std::uint32_t position = head_ + i;
  SentRecord& sent = record(position);
  if (is_under_way_again(sent)) unlink(position);
  if (sent.is(SentRecord::kLost)) lost_bytes_ -= sent.length;
  if (!sent.is(SentRecord::kRetransmitted)) ++retransmitted_segments_;
  sent.flags = static_cast<std::uint8_t>((sent.flags | SentRecord::kRetransmitted) &
                                         ~unsigned{SentRecord::kLost});
  sent.sent = now;
  if (is_under_way_again(sent)) link(position);
}

void SackScoreboard::forget_losses() {
  for (std::uint32_t position = head_; position != tail_ && lost_bytes_ > 0; ++position) {
    SentRecord& at = record(position);
    if (!at.is(SentRecord::kLost)) continue;
    at.flags = static_cast<std::uint8_t>(at.flags & ~unsigned{SentRecord::kLost});
    lost_bytes_ -= at.length;
  }
  lost_hint_ = tail_;
  link_all_again();
}

void SackScoreboard::forget_sacks() {
  for (std::uint32_t position = head_; position != tail_; ++position) {
    SentRecord& at = record(position);
    at.flags = static_cast<std::uint8_t>(at.flags & ~unsigned{SentRecord::kSacked});
  }
  sacked_bytes_ = sacked_segments_ = 0;
  if (!empty()) forward_ack_ = front().seq;
  link_all_again();
}

void SackScoreboard::rewind(SeqNum una) {
  const std::uint64_t ever_lost_bytes = ever_lost_bytes_;
  reset(una);
  ever_lost_bytes_ = ever_lost_bytes;
}

std::uint32_t SackScoreboard::first_lost() {
  assert(lost_bytes_ > 0);
  while (!record(lost_hint_).is(SentRecord::kLost)) {
    if (record(lost_hint_).is(SentRecord::kSacked))
      lost_hint_ = past_sacked(lost_hint_);
    else
      ++lost_hint_;
    assert(is_before_tail(lost_hint_));
  }
  return lost_hint_ - head_;
}

bool SackScoreboard::is_consistent() const {
  std::uint32_t outstanding = 0;
  std::uint32_t sacked = 0;
  std::uint32_t sacked_count = 0;
  std::uint32_t lost = 0;
  std::uint32_t retransmitted = 0;
  std::uint32_t again = 0;
  for (std::uint32_t i = 0; i < size(); ++i) {
    const SentRecord& record = (*this)[i];
    if (i > 0 && (*this)[i - 1].end() != record.seq) return false;
    if (record.is(SentRecord::kSacked) && record.is(SentRecord::kLost)) return false;
    outstanding += record.length;
    if (record.is(SentRecord::kSacked)) sacked += record.length, ++sacked_count;
    if (record.is(SentRecord::kLost)) lost += record.length;
    if (record.is(SentRecord::kRetransmitted)) ++retransmitted;
    if (is_under_way_again(record)) ++again;
  }
  for (std::uint32_t left = repeats_, i = first_again(); left > 1; --left) {
    if (!is_under_way_again((*this)[i]) || (*this)[next_again(i)].sent < (*this)[i].sent)
      return false;
    i = next_again(i);
  }
  return again == repeats_ && outstanding == outstanding_bytes_ && sacked == sacked_bytes_ &&
         sacked_count == sacked_segments_ && lost == lost_bytes_ &&
         retransmitted == retransmitted_segments_;
}

}  // namespace ztcp::tcp
