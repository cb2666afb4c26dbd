// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>

#include "core/ordered_copy.h"
#include "transport/msg/acceptor.h"

namespace ztcp::msg {

void RecvSession::on_chunk(TimePoint now, RecvFlow& flow, const Chunk& chunk) {
  heard_last_ = &flow;
  RecvFlow::Cursor& cursor = flow.cursor;
  cursor = {};
  cursor.message = chunk.message;
  cursor.position = chunk.offset;
  cursor.end = chunk.offset + chunk.size_bytes;
  cursor.eager = chunk.eager;
  if (state_ != State::kRunning) return;
  RecvLane* const lane = cursor.lane = lanes_.find_or_add(chunk.tag);
  if (lane == nullptr) return fail_without_lane(now);
  if (!lane->is_in_window(chunk.message) || has_bye_)
    return on_protocol_error(now, "chunk outside the message window");
  if (lane->is_finished(chunk.message)) return;
  if (places_lent_ != 0 &&
      overlaps_another(flow, [](const RecvFlow& f) { return f.cursor.is_lent; }))
    return on_protocol_error(now, "two flows bring the same bytes");

  Arrival* const m = begin(now, *lane, chunk);
  if (m == nullptr) return;
  m->wants_receipt |= chunk.wants_receipt;
  if (!lane->is_posted(chunk.message))
    reserve(now, flow, UnexpectedMessage::of(*m), chunk);
  else if (m->total == 0)
    finish(now, *lane, chunk.message);
}

// The message of the chunk; its size is known from its first chunk on. Null: the session failed.
Arrival* RecvSession::begin(TimePoint now, RecvLane& lane, const Chunk& chunk) {
  Arrival*& m = lane.arrival(chunk.message);
  if (!lane.is_posted(chunk.message)) {
    const char* breach = chunk.eager ? nullptr : "plain chunk without a posted buffer";
    if (breach == nullptr && m == nullptr && (m = unexpected_.take()) == nullptr)
      breach = "too many messages without a posted buffer";
    if (breach != nullptr) {
      on_protocol_error(now, breach);
      return nullptr;
    }
  }
  if (!m->has_begun) {
    if (lane.is_posted(chunk.message) && !fits(now, RecvMessage::of(*m), chunk.total))
      return nullptr;
    m->begin(chunk.total);
    lane.begun = std::max(lane.begun, chunk.message + 1);
    lane.is_small = is_small(chunk.total, bounce_.allowance_bytes());
    if (lane.is_sender_short()) tell_soon();
  } else if (m->total != chunk.total) {
    on_protocol_error(now, "chunks disagree on their message's size");
    return nullptr;
  }
  return m;
}

// Reserves allowance for the chunk's bytes in units that are not held.
void RecvSession::reserve(TimePoint now, RecvFlow& flow, UnexpectedMessage& m, const Chunk& chunk) {
  const std::uint64_t end = chunk.offset + chunk.size_bytes;
  std::uint64_t wanted = chunk.size_bytes;
  for (std::uint64_t u = m.unit.index(chunk.offset), last = m.units_below(end); u < last; ++u)
    if (m.held.test(u)) wanted -= m.bytes_of(u, u + 1);
  if (end > bounce_.allowance_bytes() || !bounce_.reserve(wanted)) {
    const std::uint64_t asked = std::max(end, bounce_.reserved_bytes() + wanted);
    return fail(
        now, Error{Errc::kProtocol, 0, "eager allowance"},
        FailureDetail{Reason::kAllowance, /*from_peer=*/false, bounce_.allowance_bytes(), asked});
  }
  m.reserved_bytes += wanted;
  flow.cursor.reserved_bytes = wanted;
}

bool RecvSession::fits(TimePoint now, RecvMessage& m, std::uint64_t total) {
  if (total <= m.capacity_bytes()) return true;
  fail(now, Error{Errc::kTruncated, 0, "message larger than its buffer"},
       FailureDetail{Reason::kTruncated, /*from_peer=*/false, m.capacity_bytes(), total});
  return false;
}

void RecvSession::on_payload(TimePoint now, RecvFlow& flow, std::span<const std::byte> bytes) {
  RecvFlow::Cursor& cursor = flow.cursor;
  const std::uint64_t from = cursor.position;
  const std::uint64_t to = from + bytes.size();
  cursor.position = to;
  if (state_ != State::kRunning || cursor.lane->is_finished(cursor.message)) return;

  RecvLane& lane = *cursor.lane;
  Arrival& m = *lane.arrival(cursor.message);
  const std::uint64_t first = m.unit.index(from);
  const std::uint64_t last = m.unit.index(to - 1) + 1;
  if (first + 1 == last ? !m.held.test(first) : m.held.count(first, last) == 0) [[likely]] {
    if (!sink(now, m, flow, from, bytes)) return;
  } else {
    // A peer that sends held bytes again. Held units are never written again.
    for (std::uint64_t u = first; u < last; ++u) {
      if (m.held.test(u)) continue;
      const std::uint64_t begin = std::max(from, m.unit.offset(u));
      const std::uint64_t end = std::min(to, m.unit.offset(u + 1));
      if (!sink(now, m, flow, begin, bytes.subspan(begin - from, end - begin))) return;
    }
  }
  settle(now, lane, m, cursor.message);
}

void RecvSession::settle(TimePoint now, RecvLane& lane, Arrival& m, std::uint64_t number) {
  if (lane.is_posted(number) && m.is_whole() && RecvMessage::of(m).copies_out() == 0)
    finish(now, lane, number);
  else
    note_news();
}

// Only for units that are not held.
Place RecvSession::place(const RecvFlow& flow, std::size_t bytes) {
  const RecvFlow::Cursor& cursor = flow.cursor;
  if (state_ != State::kRunning || cursor.lane->is_finished(cursor.message) ||
      !cursor.lane->is_posted(cursor.message))
    return {};
  Arrival& m = *cursor.lane->arrival(cursor.message);
  const std::uint64_t from = cursor.position;
  if (m.held.count(m.unit.index(from), m.unit.index(from + bytes - 1) + 1) != 0) return {};
  RecvMessage& message = RecvMessage::of(m);
  return {{message.buffer() + from, bytes}, message.is_polled()};
}

bool RecvSession::lend_place(RecvFlow& flow) {
  if (overlaps_another(flow, [](const RecvFlow&) { return true; })) return false;
  flow.cursor.is_lent = true;
  ++places_lent_;
  return true;
}

void RecvSession::take_back_place(RecvFlow& flow) {
  if (std::exchange(flow.cursor.is_lent, false)) --places_lent_;
}

// Whether the rest of the flow's chunk overlaps with that of another flow for which of() is true.
template <class Of>
bool RecvSession::overlaps_another(const RecvFlow& flow, Of&& of) {
  const RecvFlow::Cursor& ours = flow.cursor;
  return std::any_of(flows_.begin(), flows_.end(), [&](const auto& other) {
    if (other == nullptr || other.get() == &flow || !of(*other)) return false;
    const RecvFlow::Cursor& theirs = other->cursor;
    return theirs.lane == ours.lane && theirs.message == ours.message &&
           theirs.position < ours.end && ours.position < theirs.end;
  });
}

void RecvSession::on_placed(TimePoint now, RecvFlow& flow, std::size_t bytes) {
  take_back_place(flow);
  RecvFlow::Cursor& cursor = flow.cursor;
  const std::uint64_t from = cursor.position;
  cursor.position = from + bytes;
  if (state_ != State::kRunning || bytes == 0) return;
  RecvLane& lane = *cursor.lane;
  Arrival& m = *lane.arrival(cursor.message);
  hold(m, flow, from, from + bytes);
  settle(now, lane, m, cursor.message);
}

// Bytes of units that are not held, contiguous from byte `from`.
bool RecvSession::sink(TimePoint now, Arrival& m, RecvFlow& flow, std::uint64_t from,
                       std::span<const std::byte> bytes) {
  const bool is_posted = flow.cursor.lane->is_posted(flow.cursor.message);
  if (is_posted) {
    RecvMessage& message = RecvMessage::of(m);
    if (copies_ != nullptr && copies_->is_for(m.total))
      copies_->copy(*this, message, flow.cursor.track, from, bytes);
    else
      ordered_copy(message.buffer() + from, bytes.data(), bytes.size());
  } else if (!bounce_.write(UnexpectedMessage::of(m).pages, from, bytes)) {
    on_protocol_error(now, "eager chunks out of order");
    return false;
  }
  hold(m, flow, from, from + bytes.size());
  return true;
}

// A unit is complete with its last byte: a chunk begins at a unit.
void RecvSession::hold(Arrival& m, RecvFlow& flow, std::uint64_t from, std::uint64_t to) {
  const std::uint64_t first = m.unit.index(from);
  const std::uint64_t last = m.units_below(to);
  if (first >= last) return;
  if (first + 1 == last)
    m.held.set(first);
  else
    m.held.set(first, last);
  const std::uint64_t size_bytes = m.bytes_of(first, last);
  m.held_bytes += size_bytes;
  if (!flow.cursor.eager) return;
  if (flow.cursor.lane->is_posted(flow.cursor.message)) {
    released_ += size_bytes;
    change(*flow.cursor.lane);
  } else {
    UnexpectedMessage::of(m).eager_bytes += size_bytes;
    flow.cursor.reserved_bytes -= size_bytes;
  }
}

void RecvSession::post(TimePoint now, RecvMessage& message) {
  assert(owner_ != nullptr);
  if (state_ != State::kRunning) return;  // The owner was told, or will be told, how it ended.
  RecvLane* const lane = lanes_.find_or_add(message.tag());
  if (lane == nullptr) return fail_without_lane(now);
  if (has_bye_ || is_sender_lost_) [[unlikely]] {
    // No bytes have arrived of a message beyond the window.
    const Arrival* const came = lane->has_room() ? lane->arrival(lane->posted) : nullptr;
    if (has_bye_ && came == nullptr)
      return fail(now, Error{Errc::kPeerClosed, 0, "post: the sender has closed"},
                  why_sender_left());
    if (is_sender_lost_ && (came == nullptr || !came->is_whole()))
      return fail(now, resume_error_, why_sender_left());
  }
  ++outstanding_;
  if (watch_at_ == kNever) [[unlikely]]
    watch_from(now);
  if (lane->has_room()) [[likely]]
    take(now, *lane, message);
  else
    lane->wait(message);
}

void RecvSession::take(TimePoint now, RecvLane& lane, RecvMessage& message) {
  // As far as the sender is known to have been told: it may wait for this one.
  const bool is_the_only_one = lane.told_posted <= lane.begun;
  const std::uint64_t number = lane.posted++;
  change(lane);
  Arrival*& slot = lane.arrival(number);
  if (Arrival* const came = std::exchange(slot, &message.arrival())) {
    if (!fits(now, message, came->total)) return;
    take_over(UnexpectedMessage::of(*came), message, lane, number);
    if (slot->is_whole()) finish(now, lane, number);
  }
  if (!lane.is_small && is_the_only_one)
    flush();
  else if (lane.is_sender_short())
    tell_soon();
  else
    note_news();
}

// Copies exactly the received bytes: the memory in between must not change before its bytes arrive,
// since it may be polled.
void RecvSession::take_over(UnexpectedMessage& m, RecvMessage& to, RecvLane& lane,
                            std::uint64_t number) {
  to.arrival() = m;
  const std::uint64_t units = m.unit.count(m.total);
  for (std::uint64_t u = 0, left = m.held_bytes; left != 0 && u < units; ++u) {
    if (!m.held.test(u)) continue;
    const std::uint64_t size_bytes = m.bytes_of(u, u + 1);
    bounce_.read(m.pages, m.unit.offset(u), {to.buffer() + m.unit.offset(u), size_bytes});
    left -= size_bytes;
  }
  for (const auto& flow : flows_) {  // Incomplete units.
    if (flow == nullptr || !flow->is_alive() || flow->cursor.lane != &lane ||
        flow->cursor.message != number)
      continue;
    const std::uint64_t position = flow->cursor.position;
    const std::uint64_t unit = m.unit.index(position);
    const std::uint64_t begin = m.unit.offset(unit);
    if (position >= m.total || position == begin || m.held.test(unit)) continue;
    bounce_.read(m.pages, begin, {to.buffer() + begin, position - begin});
  }
  bounce_.release(m.pages);
  bounce_.unreserve(m.reserved_bytes);
  released_ += m.eager_bytes;
  unexpected_.give_back(m);
}

// The flow's stream has ended: its incomplete units count as nothing, and will be written again. A
// unit may be longer than a stretch, so workers may have pieces of an earlier stretch of it.
void RecvSession::drop_chunk(RecvFlow& flow) {
  take_back_place(flow);
  const RecvFlow::Cursor cursor = flow.cursor;
  flow.cursor = {};
  if (has_copies_out()) copies_->wait_for(*this);
  // The post takes the reservations back.
  if (cursor.reserved_bytes == 0 || cursor.lane->is_posted(cursor.message)) return;
  UnexpectedMessage& m = UnexpectedMessage::of(*cursor.lane->arrival(cursor.message));
  m.reserved_bytes -= cursor.reserved_bytes;
  bounce_.unreserve(cursor.reserved_bytes);
}

void RecvSession::on_copied(TimePoint now, RecvMessage& message) {
  if (message.copies_out() != 0 || !message.arrival().is_whole()) return;
  RecvLane& lane = *lanes_.find_or_add(message.tag());
  finish(now, lane, lane.number_of(message.arrival()));
}

std::size_t RecvSession::count_copying() {
  if (!has_copies_out()) return 0;
  std::size_t count = 0;
  lanes_.for_each([&](const RecvLane& lane) { count += lane.count_copying(); });
  return count;
}

void RecvSession::finish(TimePoint now, RecvLane& lane, std::uint64_t number) {
  RecvMessage& m = RecvMessage::of(*std::exchange(lane.arrival(number), nullptr));
  lane.done_beyond |= 1U << (number - lane.received);
  const int in_order = std::countr_one(lane.done_beyond);
  lane.received += static_cast<std::uint64_t>(in_order);
  untold_received_ += static_cast<std::uint64_t>(in_order);
  lane.done_beyond = static_cast<std::uint32_t>(std::uint64_t{lane.done_beyond} >> in_order);
  ++received_;
  --outstanding_;
  change(lane);
  lane.wants_receipt |= m.arrival().wants_receipt;
  if (in_order != 0) {
    must_tell_ |= lane.wants_receipt;
    lane.wants_receipt &= lane.done_beyond != 0;
  }
  note_news();
  owner_->on_done(m);  // The owner may post, close or abort.
  if (lane.waiting_first != nullptr) admit_waiting(now, lane);
}

// The window has moved.
void RecvSession::admit_waiting(TimePoint now, RecvLane& lane) {
  while (state_ == State::kRunning && lane.waiting_first != nullptr &&
         lane.posted - lane.received < kMessageWindow) {
    RecvMessage& message = *lane.waiting_first;
    lane.waiting_first = message.next();
    take(now, lane, message);
  }
}

}  // namespace ztcp::msg
