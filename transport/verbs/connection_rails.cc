// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Rails of a connection that fail: session/holdings.h says in which order what is done, and why.
// How they come back: connection_offers.cc. All of it under the connection's lock.
#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "transport/core/log.h"
#include "transport/verbs/connection.h"

namespace ztcp::verbs {
namespace {

using Health = RailState::Health;
using Step = RailNote::Step;

constexpr TimePoint kAtOnce{};
constexpr Duration kDrain = std::chrono::seconds(2);
// What a sender's NIC had given to the network when its queue pair was destroyed has arrived by
// then, or never does.
constexpr Duration kInNetwork = std::chrono::milliseconds(500);
// The longest that a sender needs to hear that it is to fence a rail.
constexpr Duration kPeerFences = std::chrono::seconds(40);

}  // namespace

void Connection::note(Step step, const RailState& rail_state) {
  RailNote out = make_note(step, index_of(rail_state), rail_state.epoch);
  if (step == Step::kFenced)
    out.holdings = receiver_ ? receiver_->holdings() : sender_->arrivals(index_of(rail_state));
  if (step == Step::kOffer || step == Step::kAccept) tell(rail_state, out.facts);
  notes_.add(out);
}

// Or the sender may take it for that.
bool Connection::is_up(const RailState& rail_state) const {
  return rail_state.health == Health::kUp || rail_state.health == Health::kAccepted;
}

// Nothing serves, nor is awaited.
bool Connection::is_lost() const {
  return std::none_of(rail_states_.begin(), rail_states_.end(),
                      [this](const RailState& one) { return is_up(one) || one.is_awaited; });
}

bool Connection::lose(std::size_t index, const std::string& why) {
  RailState& lost = rail_states_[index];
  if (is_aborted_) return false;
  if (!is_up(lost)) return true;
  const auto others =
      std::count_if(rail_states_.begin(), rail_states_.end(),
                    [&](const RailState& one) { return &one != &lost && is_up(one); });
  const bool waits = others == 0 && std::any_of(rail_states_.begin(), rail_states_.end(),
                                                [](const auto& one) { return one.is_awaited; });
  if (others == 0 && !waits) return false;
  // Of who closes in peace it is none.
  if (peer_status_.event() != PeerEvent::kClosed && lost.rail->lost_to.add(peer_.address))
    log::warn("{}: the rail over {} has failed to {}: {}; messages {}", rails_->name,
              lost.rail->device.place(), to_string(peer_), why,
              waits ? "wait for that of TCP, which begins"
                    : fmt::format("go over the other {} meanwhile", others));
  lost.is_probed = false;
  if (lost.queues) lost.queues->abort();
  lost.pause = RailState::kFirstPause;
  if (direction_ == Direction::kSend) {
    sender_->lose_rail(static_cast<std::uint32_t>(index));
    fence(lost);
    return true;
  }
  receiver_->lose_rail(static_cast<std::uint32_t>(index));
  if (const auto told = lost.stream ? lost.stream->pieces.take_untold() : std::nullopt)
    (void)take(lost, *told);
  lost.health = Health::kDraining;
  lost.is_mute = false;
  lost.due = lost.gives_up = kAtOnce;  // Drained at once, and when it is not, for a while.
  finish_draining(index);
  return true;
}

bool Connection::lose(const OpenDevice& device, const FailedPart& part, const std::string& why) {
  bool survives = true;
  for (std::size_t i = 0; i < rail_states_.size(); ++i) {
    const RailState& rail_state = rail_states_[i];
    if (rail_state.rail->device.opened.get() != &device) continue;
    if (part.at != nullptr && !(rail_state.queues && rail_state.queues->uses(part))) continue;
    survives = lose(i, why) && survives;
  }
  return survives;
}

void Connection::lose(const Rail& rail, const std::string& why) {
  for (std::size_t i = 0; i < rail_states_.size(); ++i)
    if (rail_states_[i].rail.get() == &rail) lose(i, why);
}

Status Connection::lose_broken() {
  for (std::size_t i = 0; i < rail_states_.size(); ++i) {
    if ((broken_ >> i & 1U) == 0) continue;
    const bool goes_on =
        lose(i, std::string(broken_by_.where) + ": " + std::strerror(broken_by_.sys_errno));
    broken_ &= ~(1U << i);
    if (!goes_on) return tl::unexpected(broken_by_);
  }
  return {};
}

Status Connection::lose_unfit() {
  ZTCP_CHECK(lose_broken());
  for (std::size_t i = 0; i < rail_states_.size(); ++i)
    if (!rail_states_[i].unjoined.empty()) lose(i, rail_states_[i].unjoined);
  for (std::size_t i = 0; i < rail_states_.size(); ++i) {
    const Rail& rail = *rail_states_[i].rail;
    if (rail.is_dead() && !lose(i, "its device has failed"))
      return ztcp::fail(Errc::kNoDevice, "our device has failed meanwhile");
    if (rail.is_port_down.load(std::memory_order_relaxed)) lose(i, "its port is down");
  }
  return {};
}

void Connection::take_drained(std::size_t index, const ibv_wc& completion) {
  const RailState& rail_state = rail_states_[index];
  // What came before counts.
  if (completion.status == IBV_WC_SUCCESS)
    (void)take(rail_state, completion);
  else if (completion.wr_id == QueuePairs::kReceiveId)
    rail_state.queues->took_receive();
}

void Connection::finish_draining(std::size_t index) {
  const RailState& rail_state = rail_states_[index];
  if (!rail_state.queues || rail_state.queues->is_drained()) fence(rail_states_[index]);
}

// From here on nothing comes over it any more.
void Connection::fence(RailState& rail_state) {
  rail_state.queues.reset();
  rail_state.stream.reset();
  rail_state.health = Health::kFenced;
  rail_state.due = rail_state.is_peer_fenced ? kAtOnce : kNever;
  note(Step::kFenced, rail_state);
  // Nobody is there to answer it any more.
  if (peer_status_.event() == PeerEvent::kClosed) peer_has_all();
}

// Both ends have.
Status Connection::hand_over(RailState& rail_state, TimePoint now) {
  const auto rail = static_cast<std::uint32_t>(index_of(rail_state));
  rail_state.health = Health::kDown;
  rail_state.due = kNever;
  if (!sender_) return receiver_->hand_over(rail);
  rail_state.due = rail_state.rail->is_dead() ? kNever : now + rail_state.pause;
  return sender_->hand_over(rail, rail_state.peer_holdings);
}

void Connection::peer_has_all() {
  if (sender_) sender_->arrived();
}

Status Connection::hear(const RailNote& told, TimePoint now) {
  if (is_aborted_) return {};
  if (told.rail >= rail_states_.size() || !has_recovery_)
    return ztcp::fail(Errc::kProtocol, "a note of no rail");
  if (!ZTCP_TRY(notes_.hear(told))) return {};  // Another path has brought it.
  RailState& rail_state = rail_states_[told.rail];
  if (told.step == Step::kOffer) return accept(rail_state, told);
  if (told.step == Step::kAsk) {
    if (sender_ && rail_state.health == Health::kDown) rail_state.due = now;
    return {};
  }
  if (told.epoch != rail_state.epoch) return {};  // Of queue pairs that are no more.
  const bool is_offered =
      rail_state.health == Health::kOffered || rail_state.health == Health::kProving;
  if (told.step == Step::kAccept && rail_state.health == Health::kOffered)
    return prove(rail_state, told, now);
  if (told.step == Step::kProven && rail_state.health == Health::kAccepted)
    return rejoin(rail_state);
  if (told.step != Step::kFenced && told.step != Step::kMute) return {};
  if (is_offered) return drop_offer(rail_state, "the peer does not take it", now);
  if (told.step == Step::kFenced) {
    rail_state.is_peer_fenced = true;
    rail_state.peer_holdings = told.holdings;
    if (rail_state.is_mute && rail_state.health == Health::kDraining)
      rail_state.due = rail_state.gives_up = now + kInNetwork;
  }
  if (!lose(told.rail, "the peer says so"))
    return ztcp::fail(Errc::kTimedOut, "the last of all rails");
  return told.step == Step::kFenced && rail_state.health == Health::kFenced
             ? hand_over(rail_state, now)
             : Status();
}

// NCCL's thread does as much, if it asks.
Status Connection::drain(RailState& rail_state, TimePoint now) {
  const std::size_t index = index_of(rail_state);
  std::array<ibv_wc, 16> completions;
  int count = 0;
  do {
    count = rail_state.queues->poll(completions);
    for (int i = 0; i < count; ++i) take_drained(index, completions[static_cast<std::size_t>(i)]);
  } while (count > 0);
  finish_draining(index);
  if (rail_state.health != Health::kDraining) return {};
  if (rail_state.is_mute) return fence_mute(rail_state, now);
  if (rail_state.gives_up == kAtOnce)
    rail_state.gives_up = rail_state.rail->is_dead() ? now : now + kDrain;
  if (count >= 0 && now < rail_state.gives_up) {
    rail_state.due = now + RailState::kLook;
    return {};
  }
  // It gives nothing back, and may write to memory still.
  rail_state.is_mute = true;
  rail_state.due = rail_state.gives_up =
      now + (rail_state.is_peer_fenced ? kInNetwork : kPeerFences);
  if (!rail_state.is_peer_fenced) note(Step::kMute, rail_state);
  return {};
}

// The sender has destroyed its queue pairs, and what they had sent has passed: nothing comes any
// more. A piece that was acknowledged and not reported may or may not be in memory, and the sender
// does not have it any more: then the connection ends, rather than with bytes that nobody knows.
Status Connection::fence_mute(RailState& rail_state, TimePoint now) {
  if (now < rail_state.gives_up) {
    rail_state.due = rail_state.gives_up;
    return {};
  }
  if (!rail_state.is_peer_fenced)
    return ztcp::fail(Errc::kNoDevice, "a failed device, of which the peer has heard nothing");
  if (receiver_->lacks(rail_state.peer_holdings))
    return ztcp::fail(Errc::kNoDevice,
                      "a failed device that acknowledged bytes and does not say where they are");
  fence(rail_state);
  return {};
}

}  // namespace ztcp::verbs
