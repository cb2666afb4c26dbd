// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/session/recv_session.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace ztcp::verbs {
namespace {

// Slots are written over the first queue pair. Half of what it holds may be unsignalled.
constexpr std::uint32_t kSlotQueuePair = 0;
constexpr std::uint32_t kSignalEvery = 256;
constexpr std::uint32_t kGroup = static_cast<std::uint32_t>(kMaxReceives);

}  // namespace

RecvSession::RecvSession(RecvSettings settings, Ring& ring, WorkQueues& queues)
    : settings_(std::move(settings)), ring_(ring), queues_(queues) {
  assert(!settings_.rails.empty() && settings_.rails.size() <= kMaxQueuePairs);
}

Status RecvSession::begin() {
  for (std::uint32_t i = 0; i < settings_.rails.size(); ++i)
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
                      .rkeys = buffers[i].rkeys == nullptr ? RailKeys{} : *buffers[i].rkeys,
                      .size_bytes = buffers[i].size_bytes,
                      .tag = buffers[i].tag,
                      .buffers = static_cast<std::uint32_t>(buffers.size()),
                      .sequence = next_post_};
  ++next_post_;

  const std::uint32_t rail = settings_.rails[kSlotQueuePair];
  WorkRequest work;
  work.local = reinterpret_cast<const std::byte*>(&ring_[row]);
  work.lkey = settings_.ring_lkeys[rail];
  work.size_bytes = static_cast<std::uint32_t>(buffers.size() * sizeof(Slot));
  work.is_inline = work.size_bytes <= settings_.inline_bytes;
  work.remote = settings_.ring.address + row * sizeof(Slot);
  work.rkey = settings_.ring.rkeys[rail];
  work.is_signalled = ++unsignalled_ == kSignalEvery;
  if (work.is_signalled) unsignalled_ = 0;
  work.id = sent_.add({});
  return queues_.post(kSlotQueuePair, {&work, 1});
}

Status RecvSession::on_completion(std::uint32_t queue_pair, std::uint64_t id) {
  if (queue_pair != kSlotQueuePair || !sent_.complete(id, [](const Piece&) {}))
    return fail(Errc::kProtocol, "a completion of no work of ours");
  return {};
}

Status RecvSession::on_immediate(std::uint32_t queue_pair, std::uint32_t immediate,
                                 std::uint32_t size_bytes) {
  const Immediate told = decode(immediate);
  const Slot& slot = ring_[told.slot];
  const std::uint32_t buffer = told.slot % kGroup;
  Post& post = posts_[told.slot / kGroup];
  const auto bit = static_cast<std::uint8_t>(1U << told.piece);
  std::uint8_t& come = post.pieces[buffer];
  if (post.unfilled == 0 || buffer >= slot.buffers || told.sequence != (slot.sequence & 0xffffU) ||
      told.piece >= told.pieces || (come & bit) != 0 ||
      (come != 0 && told.pieces != post.of[buffer]))
    return fail(Errc::kProtocol, "an immediate for no buffer of ours");
  std::uint32_t& received = post.received_bytes[buffer];
  if (size_bytes > slot.size_bytes - received)
    return fail(Errc::kProtocol, "an immediate of more than was posted");
  come |= bit;
  post.of[buffer] = static_cast<std::uint8_t>(told.pieces);
  received += size_bytes;
  if (come == (1U << told.pieces) - 1) --post.unfilled;
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
