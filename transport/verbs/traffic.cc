// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/traffic.h"

#include <algorithm>
#include <utility>

namespace ztcp::verbs {

void Traffic::set_rails(std::vector<RailState> rails, const EndFacts& peer, bool recovers) {
  rails_ = std::move(rails);
  peer_facts_ = peer;
  recovers_ = recovers;
}

RailState& Traffic::add_rail(std::shared_ptr<Rail> rail) {
  RailState& state = rails_.emplace_back();
  state.rail = std::move(rail);
  return state;
}

void Traffic::route(const RailState& state) {
  if (state.is_tcp()) {
    places_[state.first_queue_pair] = {.stream = state.stream.get(), .rail = index_of(state)};
    return;
  }
  for (std::uint32_t n = 0; n < state.settings.count; ++n)
    places_[state.first_queue_pair + n] = {
        .queues = state.queues.get(), .index = n, .rail = index_of(state)};
}

Status Traffic::start(Ring& ring) {
  std::vector<QueuePairFacts> all = queue_pair_facts();
  const auto is_down = [this](std::uint32_t rail) {
    return rails_[rail].health == RailState::Health::kDown;
  };
  if (direction_ == Direction::kSend) {
    sender_.emplace(std::move(all), ring, *this);
    for (std::uint32_t i = 0; i < rails_.size(); ++i)
      if (is_down(i)) sender_->lose_rail(i);
    return {};
  }
  receiver_.emplace(receive_settings(all), ring, *this);
  for (std::uint32_t i = 0; i < rails_.size(); ++i)
    if (is_down(i)) receiver_->lose_rail(i);
  return receiver_->begin();
}

RecvSettings Traffic::receive_settings(const std::vector<QueuePairFacts>& queue_pairs) const {
  RecvSettings out{.rails = {},
                   .inline_bytes = QueuePairs::kInlineBytes,
                   .ring = {.address = peer_facts_.memory_address, .rkeys = {}},
                   .ring_lkeys = {}};
  for (std::size_t i = 0; i < rails_.size(); ++i) {
    out.ring.rkeys[i] = peer_facts_.on[i].memory_rkey;
    if (rails_[i].region) out.ring_lkeys[i] = rails_[i].region->lkey;
  }
  for (const QueuePairFacts& one : queue_pairs) {
    out.rails.push_back(one.rail);
    out.inline_bytes = std::min(out.inline_bytes, one.inline_bytes);
  }
  return out;
}

std::vector<QueuePairFacts> Traffic::queue_pair_facts() const {
  std::vector<QueuePairFacts> out;
  for (std::uint32_t i = 0; i < rails_.size(); ++i) {
    const RailState& state = rails_[i];
    const std::uint32_t each = state.rail->device.speed_mbps / state.settings.count;
    out.insert(
        out.end(), state.settings.count,
        {.rail = i,
         .local_key = state.key,
         .remote_key = peer_facts_.on[i].key,
         .rate_mbps = std::max(1U, each),
         .inline_bytes = state.is_tcp() ? PieceStream::kInlineBytes : state.queues->inline_bytes(),
         .is_tcp = state.is_tcp(),
         .is_split = state.rail->device.is_split});
  }
  return out;
}

std::uint64_t Traffic::messages_done() const {
  return sender_ ? sender_->messages_done() : receiver_ ? receiver_->messages_done() : 0;
}

std::uint32_t Traffic::in_flight() const {
  return sender_ ? sender_->in_flight() : receiver_ ? receiver_->in_flight() : 0;
}

std::uint64_t Traffic::messages_begun() const {
  return sender_ ? sender_->messages_begun() : receiver_ ? receiver_->messages_begun() : 0;
}

std::uint64_t Traffic::carried_bytes(std::uint32_t rail) const {
  return sender_ ? sender_->carried_bytes(rail) : receiver_ ? receiver_->carried_bytes(rail) : 0;
}

std::uint64_t Traffic::backlog_bytes(std::uint32_t rail) const {
  return sender_ ? sender_->backlog_bytes(rail) : 0;
}

void Traffic::add_to(stats::CounterValues& sums) const {
  using stats::Counter;
  figures_.add_to(sums);
  const bool sends = direction_ == Direction::kSend;
  for (std::uint32_t i = 0; i < rails_.size(); ++i)
    sums[sends ? Counter::kSentBytes : Counter::kReceivedBytes] += carried_bytes(i);
  sums[sends ? Counter::kSentMessages : Counter::kReceivedMessages] += messages_done();
  if (sender_) sums[Counter::kRetransmittedBytes] += sender_->repeated_bytes();
}

Status Traffic::take(const RailState& state, const ibv_wc& completion) {
  const std::uint32_t queue_pair =
      state.first_queue_pair + state.queues->index_of(completion.qp_num);
  if (completion.wr_id - QueuePairs::kProbeId <= QueuePairs::kWriteId - QueuePairs::kProbeId)
      [[unlikely]] {
    if (completion.wr_id == QueuePairs::kProbeId) rails_[index_of(state)].probe.is_out = false;
    return {};
  }
  if (direction_ == Direction::kSend) return sender_->on_completion(queue_pair, completion.wr_id);
  if (completion.wr_id != QueuePairs::kReceiveId)
    return receiver_->on_completion(queue_pair, completion.wr_id);
  const Notification told = state.queues->take_receive(completion);
  return receiver_->on_immediate(queue_pair, told.immediate, told.size_bytes);
}

Status Traffic::take(const RailState& state, const PieceStream::Told& told) {
  if (direction_ == Direction::kSend)
    return sender_->on_completion(state.first_queue_pair, told.id);
  return told.is_immediate
             ? receiver_->on_immediate(state.first_queue_pair, told.immediate, told.size_bytes)
             : receiver_->on_completion(state.first_queue_pair, told.id);
}

// Where other rails go on, the rail is lost when the current call ends, together with the work that
// was posted to it.
Status Traffic::note_broken(const Place& at, const Status& why) {
  if (!recovers_) return why;
  // If later work succeeded, its completion would also confirm the work that was refused.
  at.queues->abort();
  RailState& state = rails_[at.rail];
  if (!state.broken_by) ++broken_count_;
  state.broken_by = why.error();
  return {};
}

void Traffic::mend(RailState& state) {
  if (!state.broken_by) return;
  state.broken_by.reset();
  --broken_count_;
}

void Traffic::abort() {
  is_aborted_ = true;
  for (RailState& state : rails_) {
    if (state.queues) state.queues->abort();
    state.stream.reset();
  }
}

}  // namespace ztcp::verbs
