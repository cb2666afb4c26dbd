// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Rails that come back, and rails of TCP that begin: they are offered, accepted and proven
// (exchange.h).
#include <algorithm>
#include <array>
#include <cstring>
#include <sys/random.h>
#include <utility>

#include <fmt/format.h>

#include "core/log.h"
#include "transport/sockets/kernel/packet_class.h"
#include "transport/verbs/recovery.h"

namespace ztcp::verbs {
namespace {

using Health = RailState::Health;
using Step = RailNote::Step;

// By default, a queue pair without a peer fails after 35 s.
constexpr Duration kProof = std::chrono::seconds(40);
// A stream that is dialled is polled at growing intervals, and for a shorter time.
constexpr Duration kLongestCheck = std::chrono::milliseconds(128);
constexpr Duration kStreamProof = std::chrono::seconds(10);
constexpr const char* kMayTcpPass = "; may TCP pass to its ports first_port to last_port there?";
constexpr Duration kLongestOfferPause = std::chrono::seconds(30);

std::string text_of(const Error& error) {
  return error.sys_errno == 0 ? describe(error.code)
                              : fmt::format("{} ({})", std::strerror(error.sys_errno), error.where);
}

}  // namespace

TimePoint Recovery::due() const {
  TimePoint out = kNever;
  if (traffic_.is_aborted()) return out;
  for (const RailState& state : traffic_.rails()) out = std::min(out, state.due);
  return std::min(out, awaits_until_);
}

// Only beside rails that serve from the start: a connection with rails of TCP alone begins with
// these, or fails.
void Recovery::await_tcp(TimePoint until) {
  if (is_lost()) return;
  for (RailState& state : traffic_.rails()) {
    state.is_awaited = state.is_tcp();
    if (state.is_awaited) awaits_until_ = until;
  }
}

void Recovery::offer_soon(const Rail& rail, TimePoint now) {
  for (RailState& state : traffic_.rails()) {
    if (state.rail.get() != &rail || state.health != Health::kDown) continue;
    if (traffic_.is_sender())
      state.due = now;
    else
      note(Step::kAsk, state);
  }
}

Status Recovery::advance(TimePoint now) {
  if (traffic_.is_aborted()) return {};
  if (awaits_until_ <= now) {
    awaits_until_ = kNever;
    for (RailState& state : traffic_.rails()) state.is_awaited = false;
    if (is_lost())
      return ztcp::fail(Errc::kTimedOut,
                        "no RDMA rail serves, and none of TCP has come up in time");
  }
  for (RailState& state : traffic_.rails()) {
    if (state.due > now) continue;
    switch (state.health) {
      case Health::kDraining:
      case Health::kMute:
        ZTCP_CHECK(drain(state, now));
        break;
      case Health::kDown:
        offer(state, now);
        break;
      case Health::kOffered:
        ZTCP_CHECK(drop_offer(state, "the peer does not answer", now));
        break;
      case Health::kProving:
        ZTCP_CHECK(check_proofs(state, now));
        break;
      case Health::kFenced:
        ZTCP_CHECK(hand_over(state, now));
        break;
      case Health::kUp:
      case Health::kAccepted:
        state.due = kNever;
    }
  }
  return {};
}

void Recovery::offer(RailState& state, TimePoint now) {
  state.due = state.rail->is_dead() ? kNever : now + state.pause;
  if (!state.is_tcp()) {
    if (state.rail->is_dead()) return;
    if (state.rail->is_port_down.load(std::memory_order_relaxed)) return;
    auto made = QueuePairs::create(state.rail->device, state.rail->address(), state.settings);
    if (!made) return;
    state.queues = std::move(*made);
  }
  state.peer_holdings.reset();
  ++state.epoch;
  state.health = Health::kOffered;
  state.due = now + kProof;
  note(Step::kOffer, state);
}

// Only proofs have gone over the rail.
Status Recovery::drop_offer(RailState& state, const std::string& why, TimePoint now) {
  if (state.rail->lost_to.add(peer_.address))
    log::warn("{}: no rail over {} to {}: {}", rail_set_.name, state.rail->device.place(),
              to_string(peer_), why);
  state.queues.reset();
  state.stream.reset();
  state.health = Health::kDown;
  state.pause = std::clamp(2 * state.pause, RailState::kFirstPause, kLongestOfferPause);
  state.due = now + state.pause;
  note(Step::kFenced, state);
  return is_lost() ? ztcp::fail(Errc::kTimedOut, "the only rail") : Status();
}

Status Recovery::accept(RailState& state, const RailNote& told) {
  const auto refuse = [&] {
    state.queues.reset();
    state.ticket = {};
    notes_.add(make_note(Step::kFenced, told.rail, told.epoch));
    return Status();
  };
  if (traffic_.is_sender() || state.health != Health::kDown || told.epoch <= state.epoch) {
    notes_.add(make_note(Step::kFenced, told.rail, told.epoch));
    return {};
  }
  if (!open(state, told)) return refuse();
  state.epoch = told.epoch;
  state.peer_holdings.reset();
  state.health = Health::kAccepted;
  note(Step::kAccept, state);
  return traffic_.receiver().reopen_rail(static_cast<std::uint32_t>(traffic_.index_of(state)));
}

// Makes the queue pairs, or the ticket, for the sender's offer.
bool Recovery::open(RailState& state, const RailNote& told) {
  if (state.is_tcp()) {
    traffic_.route(state);  // Routed to no stream until it is dialled.
    return state.rail->listening && getrandom(state.ticket.data(), state.ticket.size(), 0) ==
                                        static_cast<ssize_t>(state.ticket.size());
  }
  if (!state.rail->is_healthy()) return false;
  auto made = QueuePairs::create(state.rail->device, state.rail->address(), state.settings);
  if (!made) return false;
  state.queues = std::move(*made);
  return join_again(state, told);
}

bool Recovery::take_stream(const Ticket& ticket, Fd& fd) {
  if (traffic_.is_aborted() || ticket == Ticket{}) return false;
  for (RailState& state : traffic_.rails()) {
    if (state.health != Health::kAccepted || state.ticket != ticket) continue;
    state.ticket = {};
    if (state.dscp) sockets::set_class(fd, *state.dscp);
    state.stream = std::make_unique<RailStream>(std::move(fd), traffic_);
    state.stream->pieces.welcome();
    traffic_.route(state);
    return true;
  }
  return false;
}

bool Recovery::join_again(RailState& state, const RailNote& told) {
  RailFacts ours;
  state.queues->tell(ours);
  if (told.facts.queue_pairs < state.settings.count || !mismatch(ours, told.facts).empty() ||
      !state.queues->join(told.facts))
    return false;
  traffic_.peer_facts().on[traffic_.index_of(state)] = told.facts;
  traffic_.route(state);
  return true;
}

Status Recovery::prove(RailState& state, const RailNote& told, TimePoint now) {
  if (state.is_tcp()) return dial(state, told, now);
  if (!join_again(state, told)) return drop_offer(state, "its queue pairs do not fit", now);
  state.health = Health::kProving;
  state.gives_up = now + kProof;
  state.due = now;
  state.proofs = state.settings.count;
  WorkRequest nothing;
  nothing.is_signalled = true;
  nothing.remote = traffic_.peer_facts().memory_address;
  nothing.rkey = told.facts.memory_rkey;
  for (std::uint32_t i = 0; i < state.settings.count; ++i)
    if (!state.queues->post(i, nothing))
      return drop_offer(state, "its queue pairs take nothing", now);
  return {};
}

Status Recovery::dial(RailState& state, const RailNote& told, TimePoint now) {
  const Endpoint remote{address_of(told.facts.exchange), told.facts.port};
  traffic_.peer_facts().on[traffic_.index_of(state)] = told.facts;
  auto fd =
      sockets::dial(state.rail->device.exchange, state.rail->times, remote, {.dscp = state.dscp});
  if (!fd) return drop_offer(state, text_of(fd.error()) + kMayTcpPass, now);
  state.stream = std::make_unique<RailStream>(std::move(*fd), traffic_);
  traffic_.route(state);
  state.health = Health::kProving;
  state.gives_up = now + kStreamProof;
  state.due = now;
  state.check_after = RailState::kCheckAfter;
  return {};
}

Result<bool> Recovery::is_welcome(RailState& state) {
  RailStream& stream = *state.stream;
  if (!stream.has_greeted) {
    stream.has_greeted =
        ZTCP_TRY(stream.pipe.greet(traffic_.peer_facts().on[traffic_.index_of(state)].ticket));
    if (!stream.has_greeted) return false;
    stream.pipe.limit_silence(state.rail->times);
  }
  std::array<PieceStream::Told, 1> told;
  stream.pieces.expect();
  ZTCP_CHECK(stream.pieces.poll(told));
  return stream.pieces.is_welcome();
}

Status Recovery::check_proofs(RailState& state, TimePoint now) {
  if (state.is_tcp()) {
    const Result<bool> welcome = is_welcome(state);
    if (!welcome) return drop_offer(state, text_of(welcome.error()) + kMayTcpPass, now);
    if (now >= state.gives_up)
      return drop_offer(state, std::string("nobody answers there") + kMayTcpPass, now);
    state.due = now + state.check_after;
    state.check_after = std::min(2 * state.check_after, kLongestCheck);
    return *welcome ? rejoin(state) : Status();
  }
  std::array<ibv_wc, kMaxQueuePairs> completions;
  const int count = state.queues->poll(completions);
  const bool is_well =
      count >= 0 && std::all_of(completions.begin(), completions.begin() + count,
                                [](const ibv_wc& one) { return one.status == IBV_WC_SUCCESS; });
  if (!is_well || now >= state.gives_up)
    return drop_offer(state, "nothing comes back from it", now);
  state.proofs -= static_cast<std::uint32_t>(count);
  state.due = now + RailState::kCheckAfter;
  return state.proofs == 0 ? rejoin(state) : Status();
}

Status Recovery::rejoin(RailState& state) {
  const auto rail = static_cast<std::uint32_t>(traffic_.index_of(state));
  state.health = Health::kUp;
  if (state.recoveries < state.failures) ++state.recoveries;
  state.is_awaited = false;
  state.due = state.gives_up = kNever;
  if (state.rail->lost_to.remove(peer_.address))
    log::info("{}: the rail over {} to {} is back", rail_set_.name, state.rail->device.place(),
              to_string(peer_));
  if (!traffic_.is_sender()) return traffic_.receiver().rejoin_rail(rail);
  note(Step::kProven, state);
  return traffic_.sender().rejoin_rail(rail);
}

}  // namespace ztcp::verbs
