// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/session/send_session.h"

#include <algorithm>
#include <bit>
#include <cassert>

namespace ztcp::verbs {
namespace {

constexpr std::uint32_t kNone = ~0U;
constexpr std::uint32_t kGroup = static_cast<std::uint32_t>(kMaxReceives);

}  // namespace

SendSession::SendSession(const SendSettings& settings, const Ring& ring, SizeTable& sizes,
                         WorkQueues& queues)
    : settings_(settings), ring_(ring), sizes_(sizes), queues_(queues) {
  assert(settings.queue_pairs >= 1 && settings.queue_pairs <= kMaxQueuePairs);
}

Result<bool> SendSession::post(std::uint16_t number, const Message& message) {
  assert(is_done(number));
  ZTCP_CHECK(absorb());
  if (!has_room(message.bytes.size())) return false;
  const std::uint32_t slot = find_slot(message.tag);
  if (slot == kNone) return false;
  take_slot(slot);
  ZTCP_CHECK(send(number, message, slot));
  return true;
}

// Takes note of the posts that have come.
Status SendSession::absorb() {
  while (next_post_ - oldest_post_ < kPosts) {
    const Slot* const row = &ring_[row_of(next_post_)];
    if (load_sequence(row[0]) != next_post_) return {};
    const std::uint32_t buffers = row[0].buffers;
    if (buffers == 0 || buffers > kGroup) return fail(Errc::kProtocol, "a slot of the peer's");
    // A row may come in several writes.
    for (std::uint32_t i = 1; i < buffers; ++i)
      if (load_sequence(row[i]) != next_post_) return {};
    open_[(next_post_ - 1) % kPosts] = static_cast<std::uint8_t>((1U << buffers) - 1);
    ++next_post_;
  }
  return {};
}

// The first with the tag that no message has taken.
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

bool SendSession::has_room(std::uint64_t size_bytes) const {
  const std::uint32_t needed = size_bytes < kSizeInTable ? 1 : 2;
  if (piece_count(size_bytes, settings_.queue_pairs) == 1)
    return sent_[next_queue_pair_].room() >= needed;
  return std::all_of(sent_.begin(), sent_.begin() + settings_.queue_pairs,
                     [&](const SentWork& sent) { return sent.room() >= needed; });
}

Status SendSession::send(std::uint16_t number, const Message& message, std::uint32_t slot) {
  const std::uint64_t size = message.bytes.size();
  if (size > ring_[slot].size_bytes) {
    truncated_ = {message.tag, size, ring_[slot].size_bytes};
    return fail(Errc::kTruncated, "send");
  }
  ++in_flight_;
  const std::uint32_t pieces = piece_count(size, settings_.queue_pairs);
  pieces_[number] = static_cast<std::uint8_t>(pieces);
  sizes_[slot] = static_cast<std::uint32_t>(size);
  const std::uint64_t each = piece_bytes(size, settings_.queue_pairs);
  for (std::uint32_t i = 0; i < pieces; ++i) {
    const std::uint32_t queue_pair = pieces == 1 ? next_queue_pair_ : i;
    ZTCP_CHECK(
        send_piece(queue_pair, number, message, slot, i * each, std::min(size, (i + 1) * each)));
  }
  if (pieces == 1) next_queue_pair_ = (next_queue_pair_ + 1) % settings_.queue_pairs;
  return {};
}

Status SendSession::send_piece(std::uint32_t queue_pair, std::uint16_t number,
                               const Message& message, std::uint32_t slot, std::uint64_t begin,
                               std::uint64_t end) {
  const std::uint64_t size = message.bytes.size();
  std::array<WorkRequest, 2> works;
  std::size_t count = 0;
  if (size >= kSizeInTable) {
    WorkRequest& told = works[count++];
    told.local = reinterpret_cast<const std::byte*>(&sizes_[slot]);
    told.lkey = settings_.sizes_lkey;
    told.size_bytes = sizeof sizes_[slot];
    told.is_inline = told.size_bytes <= settings_.inline_bytes;
    told.remote = settings_.sizes.address + slot * sizeof sizes_[slot];
    told.rkey = settings_.sizes.rkey;
    told.id = sent_[queue_pair].add(SentWork::kNobody);
  }
  WorkRequest& work = works[count++];
  work.kind = WorkRequest::Kind::kWriteImmediate;
  work.local = message.bytes.data() + begin;
  work.lkey = message.lkey;
  work.size_bytes = static_cast<std::uint32_t>(end - begin);
  work.is_inline = message.is_host && work.size_bytes <= settings_.inline_bytes;
  work.is_signalled = true;
  work.remote = ring_[slot].address + begin;
  work.rkey = ring_[slot].rkey;
  work.immediate = to_immediate(slot, size);
  work.id = sent_[queue_pair].add(number);
  return queues_.post(queue_pair, {works.data(), count});
}

Status SendSession::on_completion(std::uint32_t queue_pair, std::uint64_t id) {
  const bool is_known = sent_[queue_pair].complete(id, [this](std::uint16_t number) {
    if (--pieces_[number] == 0) --in_flight_;
  });
  return is_known ? Status() : fail(Errc::kProtocol, "a completion of no work of ours");
}

}  // namespace ztcp::verbs
