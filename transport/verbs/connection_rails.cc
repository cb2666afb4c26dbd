// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Rails of a connection that fail and come back: session/holdings.h says in which order, and why.
// All of it under the connection's lock.
#include <algorithm>
#include <array>
#include <utility>

#include <fmt/format.h>

#include "transport/core/log.h"
#include "transport/verbs/connection.h"

namespace ztcp::verbs {
namespace {

using State = Strand::State;
using Step = RailNote::Step;

// What a device has for us is asked for so often while nobody else asks.
constexpr TimePoint kAtOnce{};
constexpr Duration kLook = std::chrono::milliseconds(2);
constexpr Duration kDrain = std::chrono::seconds(2);
// A queue pair that reaches nobody says so after 10 s by default.
constexpr Duration kProof = std::chrono::seconds(40);
constexpr Duration kFirstPause = std::chrono::seconds(1);
constexpr Duration kLongestPause = std::chrono::seconds(30);

}  // namespace

void Connection::note(Step step, const Strand& strand) {
  RailNote& out = notes_.emplace_back(make_note(step, index_of(strand), strand.epoch));
  if (step == Step::kFenced && receiver_) out.holdings = receiver_->holdings();
  if (step != Step::kOffer && step != Step::kAccept) return;
  strand.queues->tell(out.facts);
  out.facts.memory_rkey = strand.region->rkey;
}

bool Connection::lose(std::size_t index, const std::string& why) {
  Strand& lost = strands_[index];
  if (is_aborted_) return false;
  if (lost.state != State::kUp && lost.state != State::kAccepted) return true;
  const auto others = std::count_if(strands_.begin(), strands_.end(), [&](const Strand& one) {
    return &one != &lost && (one.state == State::kUp || one.state == State::kAccepted);
  });
  if (others == 0) return false;
  if (!lost.rail->is_lost.exchange(true))
    log::warn(
        "{}: the rail over {} port {} has failed to {}: {}; messages go over the other {} "
        "meanwhile",
        rails_->name, lost.rail->device.hca, lost.rail->device.port, to_string(peer_), why, others);
  lost.queues->abort();
  lost.pause = kFirstPause;
  if (direction_ == Direction::kSend) {
    sender_->lose_rail(static_cast<std::uint32_t>(index));
    fence(lost);
    return true;
  }
  receiver_->lose_rail(static_cast<std::uint32_t>(index));
  lost.state = State::kDraining;
  lost.due = lost.gives_up = kAtOnce;  // Drained at once, and when it is not, for a while.
  finish_draining(index);
  return true;
}

bool Connection::lose(const OpenDevice& device, const ibv_cq* queue, const std::string& why) {
  bool survives = true;
  for (std::size_t i = 0; i < strands_.size(); ++i) {
    const Strand& strand = strands_[i];
    if (strand.rail->device.opened.get() != &device) continue;
    if (queue != nullptr && !(strand.queues && strand.queues->uses(queue))) continue;
    survives = lose(i, why) && survives;
  }
  return survives;
}

void Connection::lose(const Rail& rail, const std::string& why) {
  for (std::size_t i = 0; i < strands_.size(); ++i)
    if (strands_[i].rail.get() == &rail) lose(i, why);
}

void Connection::take_drained(std::size_t index, const ibv_wc& completion) {
  const Strand& strand = strands_[index];
  // What came before counts.
  if (completion.status == IBV_WC_SUCCESS)
    (void)take(strand, completion);
  else if (completion.wr_id == QueuePairs::kReceiveId)
    strand.queues->took_receive();
}

void Connection::finish_draining(std::size_t index) {
  if (strands_[index].queues->is_drained()) fence(strands_[index]);
}

// From here on nothing comes over it any more.
void Connection::fence(Strand& strand) {
  strand.queues.reset();
  strand.state = State::kFenced;
  strand.due = strand.is_peer_fenced ? kAtOnce : kNever;
  note(Step::kFenced, strand);
  // Nobody is there to answer it any more.
  if (news() == News::kFarewell) peer_has_all();
}

// Both ends have.
Status Connection::hand_over(Strand& strand, TimePoint now) {
  const auto rail = static_cast<std::uint32_t>(index_of(strand));
  strand.state = State::kDown;
  strand.due = kNever;
  if (!sender_) return receiver_->hand_over(rail);
  strand.due = now + strand.pause;
  return sender_->hand_over(rail, strand.peer_holdings);
}

void Connection::peer_has_all() {
  if (sender_ && strands_.size() > 1) sender_->arrived();
}

Status Connection::hear(const RailNote& told, TimePoint now) {
  if (is_aborted_) return {};
  if (told.rail >= strands_.size() || strands_.size() == 1)
    return ztcp::fail(Errc::kProtocol, "a note of no rail");
  Strand& strand = strands_[told.rail];
  if (told.step == Step::kOffer) return accept(strand, told);
  if (told.epoch != strand.epoch) return {};  // Of queue pairs that are no more.
  const bool is_offered = strand.state == State::kOffered || strand.state == State::kProving;
  if (told.step == Step::kAccept && strand.state == State::kOffered) prove(strand, told, now);
  if (told.step == Step::kProven && strand.state == State::kAccepted) return rejoin(strand);
  if (told.step != Step::kFenced) return {};
  if (is_offered) {
    drop_offer(strand, now);
    return {};
  }
  strand.is_peer_fenced = true;
  strand.peer_holdings = told.holdings;
  if (!lose(told.rail, "the peer says so"))
    return ztcp::fail(Errc::kTimedOut, "the last of all rails");
  return strand.state == State::kFenced ? hand_over(strand, now) : Status();
}

// --- Back again ----------------------------------------------------------------------------------

TimePoint Connection::due() const {
  TimePoint out = kNever;
  if (is_aborted_) return out;
  for (const Strand& strand : strands_) out = std::min(out, strand.due);
  return out;
}

void Connection::hurry(const Rail& rail, TimePoint now) {
  for (Strand& strand : strands_)
    if (strand.rail.get() == &rail && strand.state == State::kDown && sender_) strand.due = now;
}

Status Connection::advance(TimePoint now) {
  if (is_aborted_) return {};
  for (Strand& strand : strands_) {
    if (strand.due > now) continue;
    switch (strand.state) {
      case State::kDraining:
        ZTCP_CHECK(drain(strand, now));
        break;
      case State::kDown:
        offer(strand, now);
        break;
      case State::kOffered:
        drop_offer(strand, now);  // No answer came.
        break;
      case State::kProving:
        ZTCP_CHECK(look_at_proofs(strand, now));
        break;
      case State::kFenced:
        ZTCP_CHECK(hand_over(strand, now));
        break;
      case State::kUp:
      case State::kAccepted:
        strand.due = kNever;
    }
  }
  return {};
}

// NCCL's thread does as much, if it asks.
Status Connection::drain(Strand& strand, TimePoint now) {
  const std::size_t index = index_of(strand);
  std::array<ibv_wc, 16> completions;
  int count = 0;
  do {
    count = strand.queues->poll(completions);
    for (int i = 0; i < count; ++i) take_drained(index, completions[static_cast<std::size_t>(i)]);
  } while (count > 0);
  finish_draining(index);
  if (strand.state != State::kDraining) return {};
  if (strand.gives_up == kAtOnce) strand.gives_up = now + kDrain;
  // Who knows what has come?
  if (count < 0 || now >= strand.gives_up)
    return ztcp::fail(Errc::kNoDevice, "a failed device that does not give receives back");
  strand.due = now + kLook;
  return {};
}

void Connection::offer(Strand& strand, TimePoint now) {
  strand.due = now + strand.pause;
  if (strand.rail->is_port_down.load(std::memory_order_relaxed)) return;
  auto made = QueuePairs::create(strand.rail->device, strand.settings);
  if (!made) return;
  strand.queues = std::move(*made);
  strand.is_peer_fenced = false;
  ++strand.epoch;
  strand.state = State::kOffered;
  strand.due = now + kProof;
  note(Step::kOffer, strand);
}

// Nothing but proofs has gone over it.
void Connection::drop_offer(Strand& strand, TimePoint now) {
  strand.queues.reset();
  strand.state = State::kDown;
  strand.pause = std::min(2 * strand.pause, kLongestPause);
  strand.due = now + strand.pause;
  note(Step::kFenced, strand);
}

Status Connection::accept(Strand& strand, const RailNote& told) {
  const auto refuse = [&] {
    strand.queues.reset();
    notes_.push_back(make_note(Step::kFenced, told.rail, told.epoch));
    return Status();
  };
  if (!receiver_ || strand.state != State::kDown || told.epoch <= strand.epoch) {
    notes_.push_back(make_note(Step::kFenced, told.rail, told.epoch));
    return {};
  }
  if (strand.rail->is_port_down.load(std::memory_order_relaxed)) return refuse();
  auto made = QueuePairs::create(strand.rail->device, strand.settings);
  if (!made) return refuse();
  strand.queues = std::move(*made);
  if (!join_again(strand, told)) return refuse();
  strand.epoch = told.epoch;
  strand.is_peer_fenced = false;
  strand.state = State::kAccepted;
  note(Step::kAccept, strand);
  return receiver_->reopen_rail(static_cast<std::uint32_t>(index_of(strand)));
}

bool Connection::join_again(Strand& strand, const RailNote& told) {
  RailFacts ours;
  strand.queues->tell(ours);
  if (told.facts.queue_pairs < strand.settings.count || !mismatch(ours, told.facts).empty() ||
      !strand.queues->join(told.facts))
    return false;
  peer_facts_.on[index_of(strand)] = told.facts;
  place(strand);
  return true;
}

void Connection::prove(Strand& strand, const RailNote& told, TimePoint now) {
  if (!join_again(strand, told)) return drop_offer(strand, now);
  strand.state = State::kProving;
  strand.gives_up = now + kProof;
  strand.due = now;
  strand.proofs = strand.settings.count;
  WorkRequest nothing;
  nothing.is_signalled = true;
  nothing.remote = peer_facts_.memory_address;
  nothing.rkey = told.facts.memory_rkey;
  for (std::uint32_t i = 0; i < strand.settings.count; ++i)
    if (!strand.queues->post(i, {&nothing, 1})) return drop_offer(strand, now);
}

Status Connection::look_at_proofs(Strand& strand, TimePoint now) {
  std::array<ibv_wc, kMaxQueuePairs> completions;
  const int count = strand.queues->poll(completions);
  const bool is_well =
      count >= 0 && std::all_of(completions.begin(), completions.begin() + count,
                                [](const ibv_wc& one) { return one.status == IBV_WC_SUCCESS; });
  if (!is_well || now >= strand.gives_up) {
    drop_offer(strand, now);
    return {};
  }
  strand.proofs -= static_cast<std::uint32_t>(count);
  strand.due = now + kLook;
  return strand.proofs == 0 ? rejoin(strand) : Status();
}

Status Connection::rejoin(Strand& strand) {
  const auto rail = static_cast<std::uint32_t>(index_of(strand));
  strand.state = State::kUp;
  strand.due = strand.gives_up = kNever;
  if (strand.rail->is_lost.exchange(false))
    log::info("{}: the rail over {} port {} to {} is back", rails_->name, strand.rail->device.hca,
              strand.rail->device.port, to_string(peer_));
  if (receiver_) return receiver_->rejoin_rail(rail);
  note(Step::kProven, strand);
  return sender_->rejoin_rail(rail);
}

}  // namespace ztcp::verbs
