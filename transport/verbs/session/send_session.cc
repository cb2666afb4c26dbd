// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/session/send_session.h"

#include <algorithm>
#include <bit>
#include <cassert>
#include <utility>

namespace ztcp::verbs {
namespace {

constexpr std::uint32_t kNone = ~0U;

// The queue pairs of a rail are adjacent.
bool is_split(std::span<const QueuePairFacts> all) {
  for (std::size_t i = 1; i < all.size(); ++i)
    if (all[i].rail == all[i - 1].rail && !all[i].is_split) return false;
  return true;
}

}  // namespace

SendSession::SendSession(std::vector<QueuePairFacts> queue_pairs, Ring& ring, WorkQueues& queues)
    : queue_pairs_(std::move(queue_pairs)),
      is_lone_(queue_pairs_.size() == 1 && !queue_pairs_.front().is_tcp),
      is_split_(is_split(queue_pairs_)),
      ring_(ring),
      queues_(queues),
      sent_(queue_pairs_.size()) {
  assert(!queue_pairs_.empty() && queue_pairs_.size() <= kMaxQueuePairs);
  if (queue_pairs_.back().rail == 0 && !queue_pairs_.back().is_tcp) return;
  kept_.resize(kMessages);
  arrivals_.resize(queue_pairs_.back().rail + 1);
}

Result<bool> SendSession::post(std::uint16_t number, const Message& message) {
  assert(is_done(number));
  ZTCP_CHECK(absorb());
  const std::uint64_t size = message.bytes.size();
  const std::uint32_t slot = find_slot(message.tag);
  if (slot == kNone) {
    if (!lacks_slot()) {
      lacks_slot_.set(1);
      slot_waits_.add();
    }
    return false;
  }
  lacks_slot_.set(0);
  Cut pieces{};
  if (is_lone_) {
    if (sent_[0].room() == 0) return false;
    pieces[0] = size;
  } else {
    const bool is_host = message.is_host && (ring_[slot].flags & Slot::kHost) != 0;
    const std::span<const Share> all = shares(is_host);
    if (all.empty()) {
      ZTCP_CHECK(reach(is_host));
      return false;
    }
    if (size >= kStripedBytes) {
      if (!is_split_) leave_one_of_each_rail(size);
      pieces = cut(size, all);
    }
  }
  take_slot(slot);
  ZTCP_CHECK(send(number, message, slot, pieces));
  return true;
}

// None: no queue pair that may carry the message has room.
std::span<const Share> SendSession::shares(bool is_host) {
  bool has_room = false;
  for (std::size_t i = 0; i < queue_pairs_.size(); ++i) {
    const QueuePairFacts& over = queue_pairs_[i];
    const bool takes =
        sent_[i].room() > 0 && (lost_rails_ >> over.rail & 1U) == 0 && (is_host || !over.is_tcp);
    shares_[i] = {sent_[i].backlog_bytes(), takes ? over.rate_mbps : 0};
    if (over.is_tcp)
      shares_[i].backlog_bytes +=
          std::uint64_t{over.rate_mbps} * QueuePairFacts::kTcpHeadStartUs / 8;
    has_room |= takes;
  }
  return {shares_.data(), has_room ? queue_pairs_.size() : 0};
}

// Equals take turns.
void SendSession::leave_one_of_each_rail(std::uint64_t size_bytes) {
  ++turns_;
  const auto all = static_cast<std::uint32_t>(queue_pairs_.size());
  for (std::uint32_t begin = 0, end = 0; begin < all; begin = end) {
    while (end < all && queue_pairs_[end].rail == queue_pairs_[begin].rail) ++end;
    const std::span<Share> rail = std::span(shares_).subspan(begin, end - begin);
    if (std::ranges::none_of(rail, [](const Share& one) { return one.weight != 0; })) continue;
    const std::uint32_t taken = choose(size_bytes, rail, turns_ % (end - begin));
    Share whole{};  // The share of the whole rail, beside other rails.
    for (Share& one : rail) {
      whole.backlog_bytes += one.backlog_bytes;
      whole.weight += one.weight;
      one.weight = 0;
    }
    rail[taken] = whole;
  }
}

// A message that no rail takes now waits, unless the rails that serve never will take it.
Status SendSession::reach(bool is_host) const {
  const auto serves = [&](bool is_tcp) {
    return std::any_of(queue_pairs_.begin(), queue_pairs_.end(), [&](const auto& one) {
      return one.is_tcp == is_tcp && (lost_rails_ >> one.rail & 1U) == 0;
    });
  };
  if (is_host || serves(false) || !serves(true)) return {};
  return fail(Errc::kNoDevice, kOnlyTcpIsLeft);
}

// Notes the posts that have arrived.
Status SendSession::absorb() {
  while (next_post_ - oldest_post_ < kPosts) {
    const Slot* const row = &ring_[row_of(next_post_)];
    if (load_sequence(row[0]) != next_post_) return {};
    const std::uint32_t buffers = row[0].buffers;
    if (buffers == 0 || buffers > kGroup) return fail(Errc::kProtocol, "a slot of the peer's");
    // A row may arrive in several writes.
    for (std::uint32_t i = 1; i < buffers; ++i)
      if (load_sequence(row[i]) != next_post_) return {};
    open_[(next_post_ - 1) % kPosts] = static_cast<std::uint8_t>((1U << buffers) - 1);
    ++next_post_;
  }
  return {};
}

// The first slot with the tag that no message has taken.
std::uint32_t SendSession::find_slot(std::int32_t tag) const {
  for (std::uint32_t post = oldest_post_; post != next_post_; ++post) {
    const std::uint32_t row = row_of(post);
    for (std::uint32_t open = open_[(post - 1) % kPosts]; open != 0; open &= open - 1) {
      const std::uint32_t slot = row + static_cast<std::uint32_t>(std::countr_zero(open));
      if (ring_[slot].tag == tag) return slot;
    }
  }
  return kNone;
}

void SendSession::take_slot(std::uint32_t slot) {
  std::uint8_t& open = open_[slot / kGroup];
  open = static_cast<std::uint8_t>(open & ~(1U << slot % kGroup));
  while (oldest_post_ != next_post_ && open_[(oldest_post_ - 1) % kPosts] == 0) ++oldest_post_;
}

Status SendSession::send(std::uint16_t number, const Message& message, std::uint32_t slot,
                         const Cut& cut) {
  const std::uint64_t size = message.bytes.size();
  if (size > ring_[slot].size_bytes) {
    truncated_ = {message.tag, size, ring_[slot].size_bytes};
    return fail(Errc::kTruncated, "send");
  }
  messages_begun_.add();
  if (!kept_.empty()) kept_[number] = {message, slot, ring_[slot].sequence};
  Piece piece{.message = number};
  if (size < kStripedBytes || is_lone_) {
    if (!is_lone_)
      last_queue_pair_ = choose(size, {shares_.data(), queue_pairs_.size()}, last_queue_pair_);
    unfinished_[number] = 1;
    piece.size_bytes = static_cast<std::uint32_t>(size);
    return send_piece(last_queue_pair_, message, slot, piece);
  }
  piece.of = static_cast<std::uint8_t>(
      std::count_if(cut.begin(), cut.end(), [](std::uint64_t bytes) { return bytes != 0; }));
  unfinished_[number] = static_cast<std::uint8_t>((1U << piece.of) - 1);
  for (std::uint32_t i = 0; i < queue_pairs_.size(); ++i) {
    if (cut[i] == 0) continue;
    piece.size_bytes = static_cast<std::uint32_t>(cut[i]);
    ZTCP_CHECK(send_piece(i, message, slot, piece));
    piece.begin += piece.size_bytes;
    ++piece.number;
  }
  return {};
}

Status SendSession::send_piece(std::uint32_t queue_pair, const Message& message, std::uint32_t slot,
                               const Piece& piece) {
  const QueuePairFacts& over = queue_pairs_[queue_pair];
  const Slot& to = ring_[slot];
  WorkRequest work;
  work.kind = WorkRequest::Kind::kWriteImmediate;
  work.local = message.bytes.data() + piece.begin;
  work.lkey = message.lkeys == nullptr ? 0 : (*message.lkeys)[over.local_key];
  work.size_bytes = piece.size_bytes;
  work.is_inline = message.is_host && work.size_bytes <= over.inline_bytes;
  work.is_signalled = true;
  work.remote = to.address + piece.begin;
  work.rkey = to.rkeys[over.remote_key];
  work.immediate =
      encode({.slot = slot, .sequence = to.sequence, .piece = piece.number, .pieces = piece.of});
  work.id = sent_[queue_pair].add(piece);
  return queues_.post(queue_pair, work);
}

Status SendSession::on_completion(std::uint32_t queue_pair, std::uint64_t id) {
  const auto done = [&](const Piece& piece) {
    if (!kept_.empty()) note_arrival(queue_pair, piece);
    finish(piece);
  };
  if (!sent_[queue_pair].complete(id, done) && !has_arrived_)
    return fail(Errc::kProtocol, "a completion of no work of ours");
  return waiting_.empty() ? Status() : send_again();
}

// For the row's last post alone: the receiver had all of the post before.
void SendSession::note_arrival(std::uint32_t queue_pair, const Piece& piece) {
  const Kept& kept = kept_[piece.message];
  Holdings& on = arrivals_[queue_pairs_[queue_pair].rail];
  const std::uint32_t row = kept.slot / kGroup;
  const auto later = static_cast<std::int32_t>(kept.sequence - on.sequences[row]);
  if (later < 0) return;
  if (later > 0) {
    std::fill_n(&on.pieces[row * kGroup], kGroup, std::uint8_t{0});
    on.sequences[row] = kept.sequence;
  }
  on.pieces[kept.slot] = static_cast<std::uint8_t>(on.pieces[kept.slot] | 1U << piece.number);
}

// Only whole slots of one row; their sequence numbers land last.
Result<Landing> SendSession::place(const StreamRecord& record) const {
  const std::uint64_t offset = record.remote - reinterpret_cast<std::uint64_t>(ring_.data());
  const std::uint64_t in_row = offset % (kGroup * sizeof(Slot));
  if (record.kind != StreamRecord::Kind::kWrite || offset >= sizeof(Ring) ||
      in_row % sizeof(Slot) != 0 || record.size_bytes % sizeof(Slot) != 0 ||
      record.size_bytes > kGroup * sizeof(Slot) - in_row)
    return fail(Errc::kProtocol, "slots for no row of ours");
  return Landing{reinterpret_cast<std::byte*>(ring_.data()) + offset, true};
}

void SendSession::lose_rail(std::uint32_t rail) {
  lost_rails_ |= 1U << rail;
  for (std::size_t i = 0; i < queue_pairs_.size(); ++i)
    if (queue_pairs_[i].rail == rail)
      sent_[i].abandon([&](const Piece& piece) { stranded_.push_back({piece, rail}); });
}

Status SendSession::hand_over(std::uint32_t rail, const Holdings& held) {
  for (const Stranded& one : stranded_) {
    if (one.rail != rail) continue;
    const Kept& kept = kept_[one.piece.message];
    if (held.has(kept.slot, kept.sequence, one.piece.number))
      finish(one.piece);
    else
      waiting_.push_back(one.piece);
  }
  std::erase_if(stranded_, [&](const Stranded& one) { return one.rail == rail; });
  return send_again();
}

void SendSession::arrived() {
  has_arrived_ = true;
  for (SentWork& sent : sent_) sent.abandon([this](const Piece& piece) { finish(piece); });
  for (const Stranded& one : stranded_) finish(one.piece);
  for (const Piece& piece : waiting_) finish(piece);
  stranded_.clear();
  waiting_.clear();
}

// Pieces are sent again as they were cut: the receiver knows them by number.
Status SendSession::send_again() {
  while (!waiting_.empty()) {
    const Piece piece = waiting_.back();
    const Kept& kept = kept_[piece.message];
    const std::span<const Share> all = shares(is_host(kept));
    if (all.empty()) return reach(is_host(kept));
    waiting_.pop_back();
    last_queue_pair_ = choose(piece.size_bytes, all, last_queue_pair_);
    repeated_bytes_.add(piece.size_bytes);
    ZTCP_CHECK(send_piece(last_queue_pair_, kept.message, kept.slot, piece));
  }
  return {};
}

Status SendSession::rejoin_rail(std::uint32_t rail) {
  for (std::size_t i = 0; i < queue_pairs_.size(); ++i)
    if (queue_pairs_[i].rail == rail) sent_[i].restart();
  lost_rails_ &= ~(1U << rail);
  return send_again();
}

std::uint64_t SendSession::carried_bytes(std::uint32_t rail) const {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < sent_.size(); ++i)
    if (queue_pairs_[i].rail == rail) bytes += sent_[i].carried_bytes();
  return bytes;
}

std::uint64_t SendSession::backlog_bytes(std::uint32_t rail) const {
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < sent_.size(); ++i)
    if (queue_pairs_[i].rail == rail) bytes += sent_[i].backlog_bytes();
  return bytes;
}

}  // namespace ztcp::verbs
