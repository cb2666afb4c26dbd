// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

#include "transport/msg/send_session.h"

namespace ztcp::msg {
namespace {

// With several flows up a chunk is about the flow's room, so that none gets a backlog; but room
// that opens by one segment at a time must not make chunks tiny.
constexpr std::uint64_t kMinSharedChunkBytes = 16U << 10;
// With keeps_first_flow_free: the messages that avoid the first flow, and the smallest piece that
// is worth a thread's wakeup.
constexpr std::uint64_t kBulkBytes = 64U << 10;
constexpr std::uint64_t kMinEvenChunkBytes = 128U << 10;
// After this many copied messages in a row, a lane's credit is told in batches (record.h).
constexpr std::uint64_t kMixedMessages = 16;

}  // namespace

SendSession::Choice SendSession::flow_with_most_room(std::uint64_t message_bytes) {
  Choice best;
  const auto consider = [&](SendFlow& flow) {
    if (!flow.is_up()) return;
    ++best.flows_up;
    if (const std::size_t room = flow.room(); room > best.room_bytes) {
      best.flow = &flow;
      best.room_bytes = room;
    }
  };
  const bool avoids_first = settings_.keeps_first_flow_free && message_bytes >= kBulkBytes;
  const bool wants_first = settings_.keeps_first_flow_free && message_bytes < kBulkBytes;
  if (!avoids_first) consider(flows_[0]);
  if (wants_first && best.flows_up != 0) return best;
  for (std::size_t i = 1; i < flows_granted_; ++i) consider(flows_[i]);
  if (avoids_first && best.flows_up == 0) consider(flows_[0]);
  return best;
}

void SendSession::pump(TimePoint now) {
  if (state_ != State::kReady) return;
  while (dispatch_next(now)) {
  }
}

// Called after an event: reports finished messages, then sends what may go now.
void SendSession::advance(TimePoint now) {
  complete_messages();
  pump(now);
  if (is_closing_) finish_closing();
}

// Lost units need no credit: they went out plainly, or were charged.
SendSession::Next SendSession::next_lost() {
  const auto lost = [](SendMessage& m) {
    return Next{&m, m.next_lost(), !m.lane().is_posted(m.number())};
  };
  for (SendMessage& m : sent_)
    if (m.has_lost()) return lost(m);
  auto m = unsent_.begin();
  while (!m->has_lost()) ++m;
  return lost(*m);
}

SendSession::Next SendSession::next_new() {
  for (SendMessage& m : unsent_) {
    const SendLane& lane = m.lane();
    if (lane.is_posted(m.number())) return {&m, m.next_new(), false};
    if (m.number() != lane.handed_out || !credit_.may_go_eagerly(lane)) continue;
    SendMessage::Piece piece = m.next_new();
    const std::uint64_t room = credit_.eager_room();
    if (piece.size_bytes > room)
      piece.size_bytes = m.unit().offset(m.unit().index(room));  // Whole units only.
    if (piece.size_bytes != 0 || m.total() == 0) return {&m, piece, true};
  }
  return {};
}

// Sends one chunk. False when no chunk may go, or no flow has room.
bool SendSession::dispatch_next(TimePoint now) {
  if (unsent_.empty() && messages_with_lost_units_ == 0) return false;
  Next next = messages_with_lost_units_ != 0 ? next_lost() : next_new();
  credit_wait_.set(now, next.message == nullptr);
  if (next.message == nullptr) {
    ask_if_it_helps();
    return false;
  }
  const Choice choice = flow_with_most_room(next.message->total());
  if (choice.flow == nullptr) return false;

  const UnitSize unit = next.message->unit();
  std::uint64_t limit = settings_.max_chunk_bytes;
  if (choice.flows_up > 1) {
    limit = std::min(limit, std::max<std::uint64_t>(choice.room_bytes, kMinSharedChunkBytes));
    const std::uint64_t even =
        (next.message->total() - 1) / choice.flows_up + unit.bytes();  // Rounded up.
    if (settings_.keeps_first_flow_free)
      limit = std::min(limit, std::max(even, kMinEvenChunkBytes));
  }
  limit = std::max(unit.offset(unit.index(limit)), unit.bytes());
  next.piece.size_bytes = std::min(next.piece.size_bytes, limit);
  // If its ring is full, on_acked() of that flow retries; meanwhile the others go on.
  write_chunk(*choice.flow, next);
  return true;
}

// For other lanes the receiver sends credit unasked.
void SendSession::ask_if_it_helps() {
  if (!has_asked_ &&
      std::any_of(unsent_.begin(), unsent_.end(), [](SendMessage& m) { return m.lane().is_small; }))
    ask();
}

void SendSession::ask() {
  if (has_asked_ || state_ != State::kReady) return;
  std::array<std::byte, kHeaderBytes + Ask::kBody> record;
  encode(Ask{}, record);
  expect_news();
  has_asked_ = std::any_of(flows_.begin(), flows_.end(),
                           [&](SendFlow& flow) { return flow.room() != 0 && flow.write(record); });
}

// A copy is done when the peer's kernel has acknowledged it, and kernels delay the ACK of a last
// segment by tens of milliseconds. So if the receiver's silence can't end the wait sooner, the
// receiver is asked to confirm the message. For a run of small messages these records are avoided:
// the receiver confirms them in batches, after which its silence is known.
bool SendSession::wants_receipt(const SendMessage& m) const {
  if (ack_is_delivery_) return false;
  if (!kept_.owns(m)) return true;
  const SendLane& lane = m.lane();
  return !is_receiver_silent(lane) && (!may_be_silent() || lane.begun < lane.mixed_until);
}

void SendSession::write_chunk(SendFlow& flow, const Next& next) {
  SendMessage& m = *next.message;
  SendLane& lane = m.lane();
  const auto& [offset, size_bytes] = next.piece;
  const auto size = static_cast<std::uint32_t>(size_bytes);
  std::array<std::byte, Stream::kMaxCopiedBytes> copied;
  const bool wants_receipt = this->wants_receipt(m);
  const std::size_t head = encode(
      Chunk{next.eager, size, m.number(), offset, m.total(), lane.tag, wants_receipt}, copied);
  if (wants_receipt) expect_news();
  const std::byte* data = m.data() + offset;
  bool written = false;
  if (size <= kMostCopied) {
    if (size != 0) std::memcpy(copied.data() + head, data, size);
    written = flow.write(std::span(copied).first(head + size));
  } else {
    const Fragment fragment{data, size, m.memory_key()};
    written = flow.write(std::span(copied).first(head), {&fragment, 1});
  }
  if (!written) return;

  if (m.has_lost()) {
    if (!next.eager) credit_.refund(m.eager_bytes(next.piece));
    m.hand_out(next.piece, flow.index(), next.eager, flow.written_bytes());
    if (!m.has_lost()) --messages_with_lost_units_;
    return;
  }
  if (next.eager) credit_.charge(size_bytes);
  if (offset == 0) {
    credit_.begin(lane, m.total());
    if (!kept_.owns(m)) lane.mixed_until = lane.begun + kMixedMessages;
  }
  m.hand_out(next.piece, flow.index(), next.eager, flow.written_bytes());
  if (!m.is_handed_out()) return;
  ++lane.handed_out;
  unsent_.remove(m);
  sent_.push_back(m);
}

// Does not consider streams that still refer to its memory.
bool SendSession::is_held_by_peer(const SendMessage& m) const {
  if (m.number() < m.lane().received) return true;
  return ack_is_delivery_ && !m.has_lost() && !is_in_doubt(m);
}

// Whether a flow that carried some of it has died.
bool SendSession::is_in_doubt(const SendMessage& m) const {
  for (std::size_t f = 0; f < flows_granted_; ++f)
    if (m.stream_end(f) == SendMessage::kInDoubt) return true;
  return false;
}

// Whether a living stream refers to its memory (Stream::write()).
bool SendSession::is_referred_to(const SendMessage& m) const {
  for (std::size_t f = 0; f < flows_granted_; ++f) {
    const std::uint64_t end = m.stream_end(f);
    if (end != SendMessage::kInDoubt && flows_[f].acked_bytes() < end) return true;
  }
  return false;
}

// The receiver was asked for a record, or may owe one. It has sent it by the time it reports a
// message that begins after this.
void SendSession::expect_news() {
  if (lanes_.size() != 0) silent_after_ = lanes_[0].begun;
}

// Whether no record of the receiver is in flight, nor will be before everything written so far is
// received. Follows from its rules (record.h, "When credit is told") for a connection with one lane
// and one flow.
bool SendSession::is_receiver_silent(const SendLane& lane) const {
  return may_be_silent() && lane.is_small && lane.received > lane.small_since &&
         lane.received > silent_after_ && lane.begun - lane.received < kMessageWindow / 2 &&
         !credit_.may_be_told_of_eager();
}

// Whether the message arrives even if this process ends: its bytes are the kernel's or the peer's.
// A kernel goes on sending its queued data, but drops it when any packet arrives for a process that
// has ended (RFC 1122 section 4.2.2.13).
bool SendSession::outlives_process(const SendMessage& m) {
  if (m.has_lost() || is_in_doubt(m)) return false;
  if (is_receiver_silent(m.lane())) return true;
  bool does = true;
  for (std::size_t f = 0; f < flows_granted_; ++f) {
    if (m.stream_end(f) <= flows_[f].delivered_bytes()) continue;
    flows_[f].ask_delivery();
    does = false;
  }
  return does;
}

void SendSession::on_flow_delivered() {
  complete_messages();
  if (is_closing_) finish_closing();
}

void SendSession::complete_messages() {
  for (auto next = sent_.begin(); next != sent_.end();) {
    SendMessage& m = *next++;
    if (is_referred_to(m)) continue;
    const bool is_kept = kept_.owns(m);
    SendMessage* done = is_kept ? kept_.lent(m) : &m;
    if (is_held_by_peer(m)) {
      for (std::size_t f = 0; f < flows_granted_; ++f)
        flows_[f].has_delivered |= m.stream_end(f) != 0 && m.stream_end(f) != SendMessage::kInDoubt;
      if (m.has_lost()) --messages_with_lost_units_;
      sent_.remove(m);
      if (is_kept) kept_.give_back(m);
    } else if (is_kept && done != nullptr) {
      kept_.copy(m);
      if (!outlives_process(m)) continue;
      kept_.release(m);
    } else {
      continue;
    }
    if (done == nullptr) continue;
    owner_.on_done(*done);  // The owner may post the record again, close or abort.
    if (is_ended()) return;
  }
}

bool SendSession::on_map(SendFlow& flow, const Map& map) {
  const SendLane* const lane = lanes_.find_or_add(map.tag);
  if (lane == nullptr || map.message >= lane->begun) return false;
  bool agrees = true;
  for_each_outstanding([&](SendMessage& m) {
    if (&m.lane() != lane || m.number() != map.message) return;
    const bool is_in_doubt = m.stream_end(flow.index()) == SendMessage::kInDoubt;
    if (map.is_whole && is_in_doubt)
      m.forget(flow.index());
    else if (!map.is_whole && m.total() != map.total)
      agrees = false;
    else if (is_in_doubt)
      resolve(flow, m, &map.units);
  });
  return agrees;
}

void SendSession::resolve(SendFlow& flow, SendMessage& m, const ChunkMap* held) {
  const bool had_lost = m.has_lost();
  m.resolve(flow.index(), held);
  if (!had_lost && m.has_lost()) ++messages_with_lost_units_;
}

// All maps have arrived: units that this flow carried and no map showed are either finished or
// lost.
void SendSession::on_flow_up(TimePoint now, SendFlow& flow, const Ready& ready) {
  if (!credit_.on_released(ready.released)) return on_protocol_error(now, flow, "ready");
  for_each_outstanding([&](SendMessage& m) {
    if (m.stream_end(flow.index()) != SendMessage::kInDoubt) return;
    if (m.number() < m.lane().received)
      m.forget(flow.index());
    else
      resolve(flow, m, nullptr);
  });
  if (trouble_) end_trouble(now);
  const std::uint16_t lost_port =
      std::exchange(flow.port, flow.stream()->stream_statistics(now).local.port);
  if (PathEvents* const events = dialer_.path_events()) {
    if (flow.redials != 0)
      events->on_redialled(
          now, dialer_.remote(),
          {.lasted = now - flow.lost_since,
           .lost_port = lost_port,
           .port = flow.port,
           .timeouts = flow.leaves_path ? flow.quality.timeouts() : 0,
           .marked_percent = flow.leaves_path ? flow.quality.marked_percent() : 0});
    if (flow.segment_bytes != 0)
      events->on_small_segments(now, dialer_.remote(), flow.segment_bytes);
  }
  flow.leaves_path = false;
  flow.quality = {};
  flow.up_at = now;
  flow.greeting_waits = 0;
  flow.other_queues = 0;
  flow.written_when_up = flow.written_bytes();
  flow.has_delivered = false;
  flow.begin_watch(now);
  has_asked_ = false;
  expect_news();
  if (state_ == State::kOpening) {
    state_ = State::kReady;
    owner_.on_ready(now);
    if (is_ended()) return;
  }
  if (wants_extra_flows_) start_extra_flows(now);
  advance(now);
}

void SendSession::on_flow_acked(TimePoint now, SendFlow& flow) {
  if (!flow.is_up()) return;
  advance(now);
  if (flow.is_up() && flow.has_peer_finished() && flow.is_drained()) flow.close();
}

}  // namespace ztcp::msg
