// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Rails that fail. session/holdings.h gives the order of the steps, and the reasons.
#include "transport/verbs/recovery.h"

#include <algorithm>
#include <array>
#include <cstring>

#include <fmt/format.h>

#include "core/log.h"

namespace ztcp::verbs {
namespace {

using Health = RailState::Health;
using Step = RailNote::Step;

constexpr TimePoint kAtOnce{};
constexpr Duration kDrain = std::chrono::seconds(2);
// Packets that a sender's NIC had sent before its queue pair was destroyed have arrived by then, or
// never do.
constexpr Duration kInNetwork = std::chrono::milliseconds(500);
// The longest time until a sender hears that it has to fence a rail.
constexpr Duration kPeerFences = std::chrono::seconds(40);

}  // namespace

void Recovery::note(Step step, const RailState& state) {
  RailNote out = make_note(step, traffic_.index_of(state), state.epoch);
  if (step == Step::kFenced)
    out.holdings = traffic_.is_sender() ? traffic_.sender().arrivals(traffic_.index_of(state))
                                        : traffic_.receiver().holdings();
  if (step == Step::kOffer || step == Step::kAccept) state.describe(out.facts);
  notes_.add(out);
}

// No rail serves, and none is awaited.
bool Recovery::is_lost() const {
  return std::none_of(traffic_.rails().begin(), traffic_.rails().end(),
                      [](const RailState& one) { return one.may_carry() || one.is_awaited; });
}

bool Recovery::lose(std::size_t index, const std::string& why) {
  RailState& lost = traffic_.rails()[index];
  if (traffic_.is_aborted()) return false;
  if (!lost.may_carry()) return true;
  const auto others =
      std::count_if(traffic_.rails().begin(), traffic_.rails().end(),
                    [&](const RailState& one) { return &one != &lost && one.may_carry(); });
  const bool waits = others == 0 && std::any_of(traffic_.rails().begin(), traffic_.rails().end(),
                                                [](const auto& one) { return one.is_awaited; });
  if (others == 0 && !waits) return false;
  // A peer that closed in order does not count as a failed rail.
  const bool is_failure = peer_status_.event() != PeerEvent::kClosed;
  if (is_failure) ++lost.failures;
  if (is_failure && lost.rail->lost_to.add(peer_.address))
    log::warn("{}: the rail over {} has failed to {}: {}; messages {}", rail_set_.name,
              lost.rail->device.place(), to_string(peer_), why,
              waits ? "wait for that of TCP, which begins"
                    : fmt::format("go over the other {} meanwhile", others));
  lost.probe.is_out = false;
  if (lost.queues) lost.queues->abort();
  lost.pause = RailState::kFirstPause;
  if (traffic_.is_sender()) {
    traffic_.sender().lose_rail(static_cast<std::uint32_t>(index));
    fence(lost);
    return true;
  }
  traffic_.receiver().lose_rail(static_cast<std::uint32_t>(index));
  if (const auto told = lost.stream ? lost.stream->pieces.take_untold() : std::nullopt)
    (void)traffic_.take(lost, *told);
  lost.health = Health::kDraining;
  lost.due = lost.gives_up = kAtOnce;  // Drains at once if possible, else for a while.
  finish_draining(index);
  return true;
}

bool Recovery::lose(const OpenDevice& device, const FailedPart& part, const std::string& why) {
  bool survives = true;
  for (std::size_t i = 0; i < traffic_.rails().size(); ++i) {
    const RailState& state = traffic_.rails()[i];
    if (state.rail->device.opened.get() != &device) continue;
    if (part.at != nullptr && !(state.queues && state.queues->uses(part))) continue;
    survives = lose(i, why) && survives;
  }
  return survives;
}

void Recovery::lose(const Rail& rail, const std::string& why) {
  for (std::size_t i = 0; i < traffic_.rails().size(); ++i)
    if (traffic_.rails()[i].rail.get() == &rail) lose(i, why);
}

Status Recovery::lose_broken() {
  for (RailState& state : traffic_.rails()) {
    if (!state.broken_by) continue;
    const Error broken_by = *state.broken_by;
    const bool goes_on = lose(traffic_.index_of(state), std::string(broken_by.where) + ": " +
                                                            std::strerror(broken_by.sys_errno));
    traffic_.mend(state);
    if (!goes_on) return tl::unexpected(broken_by);
  }
  return {};
}

Status Recovery::lose_unfit() {
  ZTCP_CHECK(lose_broken());
  for (std::size_t i = 0; i < traffic_.rails().size(); ++i)
    if (!traffic_.rails()[i].unjoined.empty()) lose(i, traffic_.rails()[i].unjoined);
  for (std::size_t i = 0; i < traffic_.rails().size(); ++i) {
    const Rail& rail = *traffic_.rails()[i].rail;
    if (rail.is_dead() && !lose(i, "its device has failed"))
      return ztcp::fail(Errc::kNoDevice, "our device has failed meanwhile");
    if (rail.is_port_down.load(std::memory_order_relaxed)) lose(i, "its port is down");
  }
  return {};
}

void Recovery::take_drained(std::size_t index, const ibv_wc& completion) {
  const RailState& state = traffic_.rails()[index];
  // Work that completed before the failure counts.
  if (completion.status == IBV_WC_SUCCESS)
    (void)traffic_.take(state, completion);
  else if (completion.wr_id == QueuePairs::kReceiveId)
    state.queues->took_receive();
}

void Recovery::finish_draining(std::size_t index) {
  const RailState& state = traffic_.rails()[index];
  if (!state.queues || state.queues->is_drained()) fence(traffic_.rails()[index]);
}

// From now on nothing arrives over the rail.
void Recovery::fence(RailState& state) {
  state.queues.reset();
  state.stream.reset();
  state.health = Health::kFenced;
  state.due = state.peer_holdings ? kAtOnce : kNever;
  note(Step::kFenced, state);
  // The peer is gone and does not answer the note.
  if (peer_status_.event() == PeerEvent::kClosed) peer_has_all();
}

// Both ends have fenced the rail.
Status Recovery::hand_over(RailState& state, TimePoint now) {
  const auto rail = static_cast<std::uint32_t>(traffic_.index_of(state));
  state.health = Health::kDown;
  state.due = kNever;
  if (!traffic_.is_sender()) return traffic_.receiver().hand_over(rail);
  state.due = state.rail->is_dead() ? kNever : now + state.pause;
  return traffic_.sender().hand_over(rail, *state.peer_holdings);
}

void Recovery::peer_has_all() {
  if (traffic_.is_sender()) traffic_.sender().arrived();
}

Status Recovery::hear(const RailNote& told, TimePoint now) {
  if (traffic_.is_aborted()) return {};
  if (told.rail >= traffic_.rails().size() || !traffic_.recovers())
    return ztcp::fail(Errc::kProtocol, "a note of no rail");
  if (!ZTCP_TRY(notes_.hear(told))) return {};  // Another path has delivered it before.
  RailState& state = traffic_.rails()[told.rail];
  if (told.step == Step::kOffer) return accept(state, told);
  if (told.step == Step::kAsk) {
    if (traffic_.is_sender() && state.health == Health::kDown) state.due = now;
    return {};
  }
  if (told.epoch != state.epoch) return {};  // Concerns queue pairs that are gone.
  const bool is_offered = state.health == Health::kOffered || state.health == Health::kProving;
  if (told.step == Step::kAccept && state.health == Health::kOffered)
    return prove(state, told, now);
  if (told.step == Step::kProven && state.health == Health::kAccepted) return rejoin(state);
  if (told.step != Step::kFenced && told.step != Step::kMute) return {};
  if (is_offered) return drop_offer(state, "the peer does not take it", now);
  if (told.step == Step::kFenced) {
    state.peer_holdings = told.holdings;
    if (state.health == Health::kMute) state.due = state.gives_up = now + kInNetwork;
  }
  if (!lose(told.rail, "the peer says so"))
    return ztcp::fail(Errc::kTimedOut, "the last of all rails");
  return told.step == Step::kFenced && state.health == Health::kFenced ? hand_over(state, now)
                                                                       : Status();
}

// The comm's thread does the same when it polls.
Status Recovery::drain(RailState& state, TimePoint now) {
  const std::size_t index = traffic_.index_of(state);
  std::array<ibv_wc, 16> completions;
  int count = 0;
  do {
    count = state.queues->poll(completions);
    for (int i = 0; i < count; ++i) {
      const ibv_wc& completion = completions[static_cast<std::size_t>(i)];
      traffic_.figures().completions.add();
      if (completion.status != IBV_WC_SUCCESS) traffic_.figures().note_error(completion.status);
      take_drained(index, completion);
    }
  } while (count > 0);
  finish_draining(index);
  if (!state.is_draining()) return {};
  if (state.health == Health::kMute) return fence_mute(state, now);
  if (state.gives_up == kAtOnce) state.gives_up = state.rail->is_dead() ? now : now + kDrain;
  if (count >= 0 && now < state.gives_up) {
    state.due = now + RailState::kCheckAfter;
    return {};
  }
  // The device gives nothing back, and may still write to memory.
  state.health = Health::kMute;
  state.due = state.gives_up = now + (state.peer_holdings ? kInNetwork : kPeerFences);
  if (!state.peer_holdings) note(Step::kMute, state);
  return {};
}

// The sender has destroyed its queue pairs, and their packets have left the network: nothing
// arrives any more. A piece that was acknowledged but not reported may or may not be in memory, and
// the sender no longer has it. In that case the connection ends, since the bytes are unknown.
Status Recovery::fence_mute(RailState& state, TimePoint now) {
  if (now < state.gives_up) {
    state.due = state.gives_up;
    return {};
  }
  if (!state.peer_holdings)
    return ztcp::fail(Errc::kNoDevice, "a failed device, of which the peer has heard nothing");
  if (traffic_.receiver().lacks(*state.peer_holdings))
    return ztcp::fail(Errc::kNoDevice,
                      "a failed device that acknowledged bytes and does not say where they are");
  fence(state);
  return {};
}

}  // namespace ztcp::verbs
