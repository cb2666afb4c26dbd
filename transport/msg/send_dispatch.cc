// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <algorithm>
#include <array>
#include <cassert>
#include <cstring>

#include "transport/msg/send_session.h"

namespace ztcp::msg {
namespace {

// With several flows up a chunk is about the flow's room, so that none gets a backlog; but a room
// that opens by one segment at a time must not cut messages into crumbs.
constexpr std::uint64_t kMinSharedChunkBytes = 16U << 10;

}  // namespace

SendSession::Choice SendSession::flow_with_most_room() {
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

void SendSession::pump() {
  if (state_ != State::kReady) return;
  while (dispatch_next()) {
  }
}

// Something was heard: tells of what is done, then hands out what may go now.
void SendSession::advance() {
  complete_messages();
  pump();
  if (is_closing_) finish_closing();
}

// Hands out one chunk: lost ones first, else the next in (message, offset) order. False when
// there is none, or the next one must wait for credit or room.
bool SendSession::dispatch_next() {
  SendMessage* message = nullptr;
  SendMessage::Piece piece;
  if (messages_with_lost_units_ != 0) {
    message = &first_with_lost_units();
    piece = message->next_lost();
  } else if (!unsent_.empty()) {
    message = &unsent_.front();
    piece = message->next_new();
  } else {
    return false;
  }
  const SendMessage& m = *message;

  const bool eager = !credit_.is_posted(m.number());
  if (eager) {
    if (!credit_.is_in_window(m.number())) return false;
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
  if (!write_chunk(*choice.flow, *message, piece, eager)) return true;
  if (eager) credit_.charge(piece.size_bytes);
  return true;
}

bool SendSession::write_chunk(SendFlow& flow, SendMessage& m, SendMessage::Piece piece,
                              bool eager) {
  const auto size = static_cast<std::uint32_t>(piece.size_bytes);
  std::array<std::byte, Stream::kMaxCopiedBytes> copied;
  const std::size_t head =
      encode(Chunk{eager, size, m.number(), piece.offset, m.total()}, std::span(copied));
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
  const bool was_handed_out = m.is_handed_out();
  m.hand_out(piece, flow.index(), eager, flow.written_bytes());
  if (had_lost && !m.has_lost()) --messages_with_lost_units_;
  if (m.is_handed_out() && !was_handed_out) {
    unsent_.remove(m);
    sent_.push_back(m);
  }
  return true;
}

SendMessage& SendSession::first_with_lost_units() {
  for (SendMessage& m : sent_)
    if (m.has_lost()) return m;
  auto m = unsent_.begin();
  while (!m->has_lost()) ++m;
  return *m;
}

// Also asks that no living stream refers to the message's memory (Stream::write()).
bool SendSession::is_held_by_peer(const SendMessage& m) const {
  const bool is_received = m.number() < credit_.received();
  if (!is_received && (!ack_is_delivery_ || m.has_lost())) return false;
  for (std::size_t f = 0; f < flows_granted_; ++f) {
    const std::uint64_t end = m.stream_end(f);
    if (end == 0) continue;
    if (end == SendMessage::kInDoubt ? !is_received : flows_[f].acked_bytes() < end) return false;
  }
  return true;
}

void SendSession::complete_messages() {
  for (auto next = sent_.begin(); next != sent_.end();) {
    SendMessage& m = *next++;
    if (!is_held_by_peer(m)) continue;
    if (m.has_lost()) --messages_with_lost_units_;
    sent_.remove(m);
    owner_.on_done(m);  // It may post the record again, close or abort.
    if (is_ended()) return;
  }
}

bool SendSession::on_map(SendFlow& flow, const Map& map) {
  if (map.message >= posted_) return false;
  bool agrees = true;
  for_each_outstanding([&](SendMessage& m) {
    if (m.number() != map.message) return;
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
  credit_.refund(m.resolve(flow.index(), held));
  if (!had_lost && m.has_lost()) ++messages_with_lost_units_;
}

// The maps are through: what this flow carried and no map showed is either finished or lost.
void SendSession::on_flow_up(TimePoint now, SendFlow& flow, const Credit& credit) {
  if (!credit_.on_credit(credit) || credit_.received() > posted_)
    return on_protocol_error(now, flow, "credit");
  for_each_outstanding([&](SendMessage& m) {
    if (m.stream_end(flow.index()) != SendMessage::kInDoubt) return;
    if (m.number() < credit_.received())
      m.forget(flow.index());
    else
      resolve(flow, m, nullptr);
  });
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

void SendSession::on_flow_acked(SendFlow& flow) {
  if (!flow.is_up()) return;
  advance();
  if (flow.is_up() && flow.has_peer_finished() && flow.is_drained()) flow.close();
}

}  // namespace ztcp::msg
