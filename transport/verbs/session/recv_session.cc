// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/session/recv_session.h"

#include <algorithm>
#include <cassert>

namespace ztcp::verbs {
namespace {

// Slots are written over the first queue pair. Half of what it holds may be unsignalled.
constexpr std::uint32_t kSlotQueuePair = 0;
constexpr std::uint32_t kSignalEvery = 256;
constexpr std::uint32_t kGroup = static_cast<std::uint32_t>(kMaxReceives);

}  // namespace

RecvSession::RecvSession(const RecvSettings& settings, Ring& ring, const SizeTable& sizes,
                         WorkQueues& queues)
    : settings_(settings), ring_(ring), sizes_(sizes), queues_(queues) {
  assert(settings.queue_pairs >= 1 && settings.queue_pairs <= kMaxQueuePairs);
}

Status RecvSession::begin() {
  for (std::uint32_t i = 0; i < settings_.queue_pairs; ++i)
    ZTCP_CHECK(queues_.post_receives(i, kReceiveDepth));
  return {};
}

bool RecvSession::can_post() const { return is_done(next_number()) && sent_.room() > 0; }

Status RecvSession::post(std::span<const Buffer> buffers) {
  assert(can_post() && !buffers.empty() && buffers.size() <= kMaxReceives);
  Post& post = posts_[next_number()];
  post = {};
  post.unfilled = static_cast<std::uint8_t>(buffers.size());
  const std::uint32_t row = row_of(next_post_);
  for (std::uint32_t i = 0; i < buffers.size(); ++i)
    ring_[row + i] = {.address = buffers[i].address,
                      .rkey = buffers[i].rkey,
                      .size_bytes = buffers[i].size_bytes,
                      .tag = buffers[i].tag,
                      .buffers = static_cast<std::uint32_t>(buffers.size()),
                      .sequence = next_post_};
  ++next_post_;

  WorkRequest work;
  work.local = reinterpret_cast<const std::byte*>(&ring_[row]);
  work.lkey = settings_.ring_lkey;
  work.size_bytes = static_cast<std::uint32_t>(buffers.size() * sizeof(Slot));
  work.is_inline = work.size_bytes <= settings_.inline_bytes;
  work.remote = settings_.ring.address + row * sizeof(Slot);
  work.rkey = settings_.ring.rkey;
  work.is_signalled = ++unsignalled_ == kSignalEvery;
  if (work.is_signalled) unsignalled_ = 0;
  work.id = sent_.add(SentWork::kNobody);
  return queues_.post(kSlotQueuePair, {&work, 1});
}

Status RecvSession::on_completion(std::uint32_t queue_pair, std::uint64_t id) {
  if (queue_pair != kSlotQueuePair || !sent_.complete(id, [](std::uint16_t) {}))
    return fail(Errc::kProtocol, "a completion of no work of ours");
  return {};
}

Status RecvSession::on_immediate(std::uint32_t queue_pair, std::uint32_t immediate) {
  const std::uint32_t slot = slot_of(immediate);
  Post& post = posts_[slot / kGroup];
  const std::uint32_t buffer = slot % kGroup;
  if (post.unfilled == 0 || buffer >= ring_[slot].buffers || post.is_filled[buffer])
    return fail(Errc::kProtocol, "an immediate for no buffer of ours");
  const std::uint32_t told = size_of(immediate);
  const std::uint32_t size = told == kSizeInTable ? sizes_[slot] : told;
  if (size > ring_[slot].size_bytes)
    return fail(Errc::kProtocol, "an immediate of more than was posted");
  post.received_bytes[buffer] = size;
  if (++post.pieces[buffer] == piece_count(size, settings_.queue_pairs)) {
    post.is_filled[buffer] = true;
    --post.unfilled;
  }
  // As many are there as buffers may be posted, and one batch more.
  if (++consumed_[queue_pair] < kReceiveBatch) return {};
  consumed_[queue_pair] = 0;
  return queues_.post_receives(queue_pair, kReceiveBatch);
}

bool RecvSession::is_idle() const {
  return std::all_of(posts_.begin(), posts_.end(),
                     [](const Post& post) { return post.unfilled == 0; });
}

}  // namespace ztcp::verbs
