// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

#include "transport/msg/send_session_impl.h"

namespace ztcp::msg {
namespace {

// With several flows up a chunk is about the flow's room, so that none gets a backlog; but a room
// that opens by one segment at a time must not cut messages into crumbs.
constexpr std::uint64_t kMinSharedChunkBytes = 16U << 10;

}  // namespace

SendSession::Impl::Choice SendSession::Impl::flow_with_most_room() {
  Choice best;
  for (std::size_t i = 0; i < flows_granted_; ++i) {
    if (!flows_[i].is_up()) continue;
    ++best.flows_up;
    if (const std::size_t room = flows_[i].room(); room > best.room_bytes) {
      best.flow = &flows_[i];
      best.room_bytes = room;
    }
  }
  return best;
}

void SendSession::Impl::pump() {
  if (state_ != State::kReady) return;
  while (dispatch_next()) {
  }
}

// Something was heard: tells of what is done, then hands out what may go now.
void SendSession::Impl::advance() {
  complete_messages();
  pump();
  if (is_closing_) finish_closing();
}

// Hands out one chunk: lost ones first, else the next in (message, offset) order. False when
// there is none, or the next one must wait for credit or room.
bool SendSession::Impl::dispatch_next() {
  std::uint64_t number = unsent_;
  SendMessage::Piece piece;
  if (messages_with_lost_units_ != 0) {
    number = first_;
    while (!message(number).has_lost()) ++number;
    piece = message(number).next_lost();
  } else if (unsent_ != next_) {
    piece = message(unsent_).next_new();
  } else {
    return false;
  }
  const SendMessage& m = message(number);

  const bool eager = !credit_.is_posted(number);
  if (eager) {
    if (!credit_.is_in_window(number)) return false;
    const std::uint64_t room = credit_.eager_room();
    if (piece.size_bytes > room)
      piece.size_bytes = m.unit().offset(m.unit().index(room));  // Whole units only.
    if (piece.size_bytes == 0 && m.total() != 0) return false;
  }

  const Choice choice = flow_with_most_room();
  if (choice.flow == nullptr) return false;
  std::uint64_t limit = settings_.max_chunk_bytes;
  if (choice.flows_up > 1)
    limit = std::min(limit, std::max<std::uint64_t>(choice.room_bytes, kMinSharedChunkBytes));
  limit = std::max(m.unit().offset(m.unit().index(limit)), m.unit().bytes());
  piece.size_bytes = std::min(piece.size_bytes, limit);

  // A full ring: on_acked() of that flow comes back here; meanwhile the others go on.
  if (!write_chunk(*choice.flow, number, piece, eager)) return true;
  if (eager) credit_.charge(piece.size_bytes);
  return true;
}

bool SendSession::Impl::write_chunk(SendFlow& flow, std::uint64_t number, SendMessage::Piece piece,
                                    bool eager) {
  SendMessage& m = message(number);
  const auto size = static_cast<std::uint32_t>(piece.size_bytes);
  std::array<std::byte, Stream::kMaxCopiedBytes> copied;
  const std::size_t head =
      encode(Chunk{eager, size, number, piece.offset, m.total()}, std::span(copied));
  const std::byte* data = m.data() + piece.offset;
  bool written = false;
  if (size <= copied.size() - kChunkRecordBytes) {
    if (size != 0) std::memcpy(copied.data() + head, data, size);
    written = flow.write(std::span(copied).first(head + size));
  } else {
    const Fragment fragment{data, size, m.memory_key()};
    written = flow.write(std::span(copied).first(head), {&fragment, 1});
  }
  if (!written) return false;

  const bool had_lost = m.has_lost();
  m.hand_out(piece, flow.index(), eager, flow.written_bytes());
  if (had_lost && !m.has_lost()) --messages_with_lost_units_;
  while (unsent_ != next_ && message(unsent_).is_handed_out()) ++unsent_;
  return true;
}

// Also asks that no living stream refers to the message's memory (Stream::write()).
bool SendSession::Impl::is_held_by_peer(std::uint64_t number) {
  const SendMessage& m = message(number);
  const bool is_received = number < credit_.received();
  if (!is_received && (!ack_is_delivery_ || m.has_lost())) return false;
  for (std::size_t f = 0; f < flows_granted_; ++f) {
    const std::uint64_t end = m.stream_end(f);
    if (end == 0) continue;
    if (end == SendMessage::kInDoubt ? !is_received : flows_[f].acked_bytes() < end) return false;
  }
  return true;
}

void SendSession::Impl::complete_messages() {
  for (std::uint64_t number = first_; number < unsent_; number = std::max(number + 1, first_)) {
    SendMessage& m = message(number);
    if (m.is_done() || !is_held_by_peer(number)) continue;
    if (m.has_lost()) --messages_with_lost_units_;
    m.set_done();
    const std::uint32_t token = m.token();
    const std::size_t size_bytes = m.total();
    // First: the owner may post the slot again from within on_done().
    while (first_ != unsent_ && message(first_).is_done()) ++first_;
    owner_.on_done(token, size_bytes);
    if (is_ended()) return;
  }
}

bool SendSession::Impl::on_map(SendFlow& flow, const Map& map) {
  if (map.message >= next_) return false;
  if (map.message < first_) return true;
  SendMessage& m = message(map.message);
  if (m.total() != map.total) return false;
  if (m.is_done() || m.stream_end(flow.index()) != SendMessage::kInDoubt) return true;
  const bool had_lost = m.has_lost();
  credit_.refund(m.resolve(flow.index(), &map.units));
  if (!had_lost && m.has_lost()) ++messages_with_lost_units_;
  return true;
}

// The maps are through: what this flow carried and no map showed is either finished or lost.
void SendSession::Impl::on_flow_up(TimePoint now, SendFlow& flow, const Credit& credit) {
  if (!credit_.on_credit(credit) || credit_.received() > next_)
    return on_protocol_error(now, flow, "credit");
  for (std::uint64_t number = first_; number < next_; ++number) {
    SendMessage& m = message(number);
    if (m.is_done() || m.stream_end(flow.index()) != SendMessage::kInDoubt) continue;
    if (number < credit_.received()) {
      m.forget(flow.index());
      continue;
    }
    const bool had_lost = m.has_lost();
    credit_.refund(m.resolve(flow.index(), nullptr));
    if (!had_lost && m.has_lost()) ++messages_with_lost_units_;
  }
  flow.up_at = now;
  flow.received_when_up = credit_.received();
  if (state_ == State::kOpening) {
    state_ = State::kReady;
    owner_.on_ready(now);
    if (is_ended()) return;
  }
  if (wants_extra_flows_) start_extra_flows(now);
  advance();
}

void SendSession::Impl::on_flow_acked(SendFlow& flow) {
  if (!flow.is_up()) return;
  advance();
  if (flow.is_up() && flow.has_peer_finished() && flow.is_drained()) flow.close();
}

}  // namespace ztcp::msg
