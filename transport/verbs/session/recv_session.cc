// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/session/recv_session.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>

namespace ztcp::verbs {
namespace {

// At most half of a queue pair's depth may be unsignalled.
constexpr std::uint32_t kSignalEvery = 256;

}  // namespace

RecvSession::RecvSession(RecvSettings settings, Ring& ring, WorkQueues& queues)
    : settings_(std::move(settings)), ring_(ring), queues_(queues), sent_(settings_.rails.size()) {
  assert(!settings_.rails.empty() && settings_.rails.size() <= kMaxQueuePairs);
}

Status RecvSession::begin() {
  for (std::uint32_t i = 0; i < settings_.rails.size(); ++i)
    ZTCP_CHECK(queues_.post_receives(i, kReceiveDepth));
  return {};
}

void RecvSession::choose_slot_queue_pair() {
  slot_queue_pair_ = 0;
  while (slot_queue_pair_ < settings_.rails.size() &&
         ((lost_rails_ | unproven_rails_) >> settings_.rails[slot_queue_pair_] & 1U) != 0)
    ++slot_queue_pair_;
  if (slot_queue_pair_ == settings_.rails.size()) slot_queue_pair_ = kNoQueuePair;
}

bool RecvSession::can_post() const {
  const Post& last = posts_[next_number()];
  if (last.unfilled != 0) return false;
  // Otherwise the row's earlier content could overwrite it.
  if (last.is_rewritten) return false;
  return slot_queue_pair_ != kNoQueuePair && sent_[slot_queue_pair_].room() > 0;
}

Status RecvSession::post(std::span<const Buffer> buffers) {
  assert(can_post() && !buffers.empty() && buffers.size() <= kMaxReceives);
  Post& post = posts_[next_number()];
  post = {};
  post.unfilled = static_cast<std::uint8_t>(buffers.size());
  const std::uint32_t row = row_of(next_post_);
  for (std::uint32_t i = 0; i < buffers.size(); ++i)
    ring_[row + i] = {.address = buffers[i].address,
                      .rkeys = buffers[i].rkeys == nullptr ? RailKeys{} : *buffers[i].rkeys,
                      .size_bytes = buffers[i].size_bytes,
                      .tag = buffers[i].tag,
                      .buffers = static_cast<std::uint32_t>(buffers.size()),
                      .flags = buffers[i].flags,
                      .sequence = next_post_};
  messages_begun_.add(buffers.size());
  waiting_rows_ &= ~(1U << next_number());
  ++next_post_;
  return write_row(row);
}

Status RecvSession::write_row(std::uint32_t row) {
  const std::uint32_t over = slot_queue_pair_;
  const std::uint32_t rail = settings_.rails[over];
  posts_[row / kGroup].rail = static_cast<std::uint8_t>(rail);
  WorkRequest work;
  work.local = reinterpret_cast<const std::byte*>(&ring_[row]);
  work.lkey = settings_.ring_lkeys[rail];
  work.size_bytes = static_cast<std::uint32_t>(ring_[row].buffers * sizeof(Slot));
  work.is_inline = work.size_bytes <= settings_.inline_bytes;
  work.remote = settings_.ring.address + row * sizeof(Slot);
  work.rkey = settings_.ring.rkeys[rail];
  const bool is_again = posts_[row / kGroup].is_rewritten;
  work.is_signalled = ++unsignalled_[over] == kSignalEvery || is_again;
  if (work.is_signalled) unsignalled_[over] = 0;
  Piece piece;
  if (is_again) piece.message = static_cast<std::uint16_t>(row / kGroup);
  work.id = sent_[over].add(piece);
  return queues_.post(over, work);
}

Status RecvSession::on_completion(std::uint32_t queue_pair, std::uint64_t id) {
  if (!sent_[queue_pair].complete(
          id, [this](const Piece& of) { posts_[of.message].is_rewritten = false; }))
    return fail(Errc::kProtocol, "a completion of no work of ours");
  return waiting_rows_ == 0 ? Status() : write_waiting();
}

// Whether the piece is for a waiting buffer, and has not arrived before.
inline bool RecvSession::is_awaited(const Immediate& told) const {
  const Slot& slot = ring_[told.slot];
  const std::uint32_t buffer = told.slot % kGroup;
  const Post& post = posts_[told.slot / kGroup];
  const std::uint32_t come = post.pieces[buffer];
  return post.unfilled != 0 && buffer < slot.buffers &&
         told.sequence == (slot.sequence & 0xffffU) && told.piece < told.pieces &&
         (come >> told.piece & 1U) == 0 && (come == 0 || told.pieces == post.of[buffer]);
}

Status RecvSession::on_immediate(std::uint32_t queue_pair, std::uint32_t immediate,
                                 std::uint32_t size_bytes) {
  const Immediate told = decode(immediate);
  if (!is_awaited(told)) return fail(Errc::kProtocol, "an immediate for no buffer of ours");
  const std::uint32_t buffer = told.slot % kGroup;
  Post& post = posts_[told.slot / kGroup];
  std::uint8_t& come = post.pieces[buffer];
  std::uint32_t& received = post.received_bytes[buffer];
  if (size_bytes > ring_[told.slot].size_bytes - received)
    return fail(Errc::kProtocol, "an immediate of more than was posted");
  come = static_cast<std::uint8_t>(come | 1U << told.piece);
  post.of[buffer] = static_cast<std::uint8_t>(told.pieces);
  received += size_bytes;
  carried_bytes_[queue_pair].add(size_bytes);
  if (come == (1U << told.pieces) - 1) {
    --post.unfilled;
    messages_done_.add();
  }
  // Receives for all buffers that may be posted, and one batch more.
  if (++consumed_[queue_pair] < kReceiveBatch ||
      (lost_rails_ >> settings_.rails[queue_pair] & 1U) != 0)
    return {};
  consumed_[queue_pair] = 0;
  return queues_.post_receives(queue_pair, kReceiveBatch);
}

// Only inside the buffer, and only while it waits for the piece: a buffer that is done belongs to
// NCCL.
Result<Landing> RecvSession::place(const StreamRecord& record) const {
  const Immediate told = decode(record.immediate);
  const Slot& slot = ring_[told.slot];
  const std::uint64_t offset = record.remote - slot.address;
  if (record.kind != StreamRecord::Kind::kPiece || !is_awaited(told) ||
      (slot.flags & Slot::kHost) == 0 || record.remote < slot.address || offset > slot.size_bytes ||
      record.size_bytes > slot.size_bytes - offset)
    return fail(Errc::kProtocol, "bytes for no buffer of ours");
  // The address travels to the sender and back as a number.
  auto* const begin =
      reinterpret_cast<std::byte*>(slot.address);  // NOLINT(performance-no-int-to-ptr)
  return Landing{begin + offset, (slot.flags & Slot::kPolled) != 0};
}

Holdings RecvSession::holdings() const {
  Holdings out;
  for (std::size_t i = 0; i < kPosts; ++i) {
    out.sequences[i] = ring_[i * kGroup].sequence;
    std::copy(posts_[i].pieces.begin(), posts_[i].pieces.end(), &out.pieces[i * kGroup]);
  }
  return out;
}

bool RecvSession::lacks(const Holdings& arrived) const {
  for (std::size_t i = 0; i < kSlots; ++i) {
    const Post& post = posts_[i / kGroup];
    const bool is_of_it = arrived.sequences[i / kGroup] == ring_[i / kGroup * kGroup].sequence;
    if (post.unfilled != 0 && is_of_it && (arrived.pieces[i] & ~post.pieces[i % kGroup]) != 0)
      return true;
  }
  return false;
}

// Rows that were written over the rail may have to be written again, once the sender has fenced it.
void RecvSession::lose_rail(std::uint32_t rail) {
  lost_rails_ |= 1U << rail;
  unproven_rails_ &= ~(1U << rail);
  for (std::size_t i = 0; i < settings_.rails.size(); ++i)
    if (settings_.rails[i] == rail) {
      sent_[i].restart();
      unsignalled_[i] = 0;
    }
  if (slot_queue_pair_ != kNoQueuePair && settings_.rails[slot_queue_pair_] == rail)
    choose_slot_queue_pair();
}

// All of them: a sender that has taken a slot does not read its row again until the next post.
Status RecvSession::hand_over(std::uint32_t rail) {
  assert((lost_rails_ >> rail & 1U) != 0);
  for (std::uint32_t i = 0; i < kPosts; ++i) {
    if (posts_[i].rail != rail) continue;
    posts_[i].is_rewritten = false;
    if (posts_[i].unfilled != 0) waiting_rows_ |= 1U << i;
  }
  return write_waiting();
}

Status RecvSession::write_waiting() {
  while (waiting_rows_ != 0) {
    if (slot_queue_pair_ == kNoQueuePair || sent_[slot_queue_pair_].room() == 0) return {};
    const auto row = static_cast<std::uint32_t>(std::countr_zero(waiting_rows_));
    waiting_rows_ &= waiting_rows_ - 1;
    posts_[row].is_rewritten = true;
    ZTCP_CHECK(write_row(row * kGroup));
  }
  return {};
}

Status RecvSession::rejoin_rail(std::uint32_t rail) {
  unproven_rails_ &= ~(1U << rail);
  // Also if another rail served: the row's earlier content has arrived, or the row is written
  // again.
  choose_slot_queue_pair();
  return write_waiting();
}

Status RecvSession::reopen_rail(std::uint32_t rail) {
  lost_rails_ &= ~(1U << rail);
  unproven_rails_ |= 1U << rail;
  for (std::uint32_t i = 0; i < settings_.rails.size(); ++i) {
    if (settings_.rails[i] != rail) continue;
    consumed_[i] = 0;
    ZTCP_CHECK(queues_.post_receives(i, kReceiveDepth));
  }
  return {};
}

bool RecvSession::is_idle() const {
  return std::all_of(posts_.begin(), posts_.end(),
                     [](const Post& post) { return post.unfilled == 0; });
}

std::uint64_t RecvSession::carried_bytes(std::uint32_t rail) const {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < settings_.rails.size(); ++i)
    if (settings_.rails[i] == rail) bytes += carried_bytes_[i].value();
  return bytes;
}

}  // namespace ztcp::verbs
