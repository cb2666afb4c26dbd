// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Rails of a connection that come back, and those of TCP that begin: offered, accepted and proven
// (exchange.h). All of it under the connection's lock.
#include <algorithm>
#include <array>
#include <cstring>
#include <sys/random.h>
#include <utility>

#include <fmt/format.h>

#include "transport/core/log.h"
#include "transport/verbs/connection.h"

namespace ztcp::verbs {
namespace {

using Health = RailState::Health;
using Step = RailNote::Step;

// A queue pair that reaches nobody says so after 35 s by default.
constexpr Duration kProof = std::chrono::seconds(40);
// A stream that is dialled is looked at ever more seldom, and not for so long.
constexpr Duration kLongestLook = std::chrono::milliseconds(128);
constexpr Duration kStreamProof = std::chrono::seconds(10);
constexpr const char* kMayTcpPass = "; may TCP pass to its ports first_port to last_port there?";
constexpr Duration kLongestPause = std::chrono::seconds(30);

std::string text_of(const Error& error) {
  return error.sys_errno == 0 ? describe(error.code)
                              : fmt::format("{} ({})", std::strerror(error.sys_errno), error.where);
}

}  // namespace

TimePoint Connection::due() const {
  TimePoint out = kNever;
  if (is_aborted_) return out;
  for (const RailState& rail_state : rail_states_) out = std::min(out, rail_state.due);
  return std::min(out, awaits_until_);
}

// Beside what serves from the first: one that has TCP alone begins with it, or not at all.
void Connection::await_tcp(TimePoint until) {
  if (is_lost()) return;
  for (RailState& rail_state : rail_states_) {
    rail_state.is_awaited = rail_state.is_tcp();
    if (rail_state.is_awaited) awaits_until_ = until;
  }
}

void Connection::hurry(const Rail& rail, TimePoint now) {
  for (RailState& rail_state : rail_states_) {
    if (rail_state.rail.get() != &rail || rail_state.health != Health::kDown) continue;
    if (sender_)
      rail_state.due = now;
    else
      note(Step::kAsk, rail_state);
  }
}

Status Connection::advance(TimePoint now) {
  if (is_aborted_) return {};
  if (awaits_until_ <= now) {
    awaits_until_ = kNever;
    for (RailState& rail_state : rail_states_) rail_state.is_awaited = false;
    if (is_lost())
      return ztcp::fail(Errc::kTimedOut,
                        "no RDMA rail serves, and none of TCP has come up in time");
  }
  for (RailState& rail_state : rail_states_) {
    if (rail_state.due > now) continue;
    switch (rail_state.health) {
      case Health::kDraining:
        ZTCP_CHECK(drain(rail_state, now));
        break;
      case Health::kDown:
        offer(rail_state, now);
        break;
      case Health::kOffered:
        ZTCP_CHECK(drop_offer(rail_state, "the peer does not answer", now));
        break;
      case Health::kProving:
        ZTCP_CHECK(look_at_proofs(rail_state, now));
        break;
      case Health::kFenced:
        ZTCP_CHECK(hand_over(rail_state, now));
        break;
      case Health::kUp:
      case Health::kAccepted:
        rail_state.due = kNever;
    }
  }
  return {};
}

void Connection::offer(RailState& rail_state, TimePoint now) {
  rail_state.due = rail_state.rail->is_dead() ? kNever : now + rail_state.pause;
  if (!rail_state.is_tcp()) {
    if (rail_state.rail->is_dead()) return;
    if (rail_state.rail->is_port_down.load(std::memory_order_relaxed)) return;
    auto made = QueuePairs::create(rail_state.rail->device, rail_state.rail->address(),
                                   rail_state.settings);
    if (!made) return;
    rail_state.queues = std::move(*made);
  }
  rail_state.is_peer_fenced = false;
  ++rail_state.epoch;
  rail_state.health = Health::kOffered;
  rail_state.due = now + kProof;
  note(Step::kOffer, rail_state);
}

// Nothing but proofs has gone over it.
Status Connection::drop_offer(RailState& rail_state, const std::string& why, TimePoint now) {
  if (rail_state.rail->lost_to.add(peer_.address))
    log::warn("{}: no rail over {} to {}: {}", rails_->name, rail_state.rail->device.place(),
              to_string(peer_), why);
  rail_state.queues.reset();
  rail_state.stream.reset();
  rail_state.health = Health::kDown;
  rail_state.pause = std::clamp(2 * rail_state.pause, RailState::kFirstPause, kLongestPause);
  rail_state.due = now + rail_state.pause;
  note(Step::kFenced, rail_state);
  return is_lost() ? ztcp::fail(Errc::kTimedOut, "the only rail") : Status();
}

Status Connection::accept(RailState& rail_state, const RailNote& told) {
  const auto refuse = [&] {
    rail_state.queues.reset();
    rail_state.ticket = {};
    notes_.add(make_note(Step::kFenced, told.rail, told.epoch));
    return Status();
  };
  if (!receiver_ || rail_state.health != Health::kDown || told.epoch <= rail_state.epoch) {
    notes_.add(make_note(Step::kFenced, told.rail, told.epoch));
    return {};
  }
  if (!open(rail_state, told)) return refuse();
  rail_state.epoch = told.epoch;
  rail_state.is_peer_fenced = false;
  rail_state.health = Health::kAccepted;
  note(Step::kAccept, rail_state);
  return receiver_->reopen_rail(static_cast<std::uint32_t>(index_of(rail_state)));
}

// What the sender is to be joined to.
bool Connection::open(RailState& rail_state, const RailNote& told) {
  if (rail_state.is_tcp()) {
    place(rail_state);  // To nothing, until it is dialled.
    return rail_state.rail->listening &&
           getrandom(rail_state.ticket.data(), rail_state.ticket.size(), 0) ==
               static_cast<ssize_t>(rail_state.ticket.size());
  }
  if (!rail_state.rail->is_healthy()) return false;
  auto made =
      QueuePairs::create(rail_state.rail->device, rail_state.rail->address(), rail_state.settings);
  if (!made) return false;
  rail_state.queues = std::move(*made);
  return join_again(rail_state, told);
}

bool Connection::take_stream(const Ticket& ticket, link::Fd& fd) {
  if (is_aborted_ || ticket == Ticket{}) return false;
  for (RailState& rail_state : rail_states_) {
    if (rail_state.health != Health::kAccepted || rail_state.ticket != ticket) continue;
    rail_state.ticket = {};
    rail_state.stream = std::make_unique<RailStream>(std::move(fd), *this);
    rail_state.stream->pieces.welcome();
    place(rail_state);
    return true;
  }
  return false;
}

bool Connection::join_again(RailState& rail_state, const RailNote& told) {
  RailFacts ours;
  rail_state.queues->tell(ours);
  if (told.facts.queue_pairs < rail_state.settings.count || !mismatch(ours, told.facts).empty() ||
      !rail_state.queues->join(told.facts))
    return false;
  peer_facts_.on[index_of(rail_state)] = told.facts;
  place(rail_state);
  return true;
}

Status Connection::prove(RailState& rail_state, const RailNote& told, TimePoint now) {
  if (rail_state.is_tcp()) return dial(rail_state, told, now);
  if (!join_again(rail_state, told))
    return drop_offer(rail_state, "its queue pairs do not fit", now);
  rail_state.health = Health::kProving;
  rail_state.gives_up = now + kProof;
  rail_state.due = now;
  rail_state.proofs = rail_state.settings.count;
  WorkRequest nothing;
  nothing.is_signalled = true;
  nothing.remote = peer_facts_.memory_address;
  nothing.rkey = told.facts.memory_rkey;
  for (std::uint32_t i = 0; i < rail_state.settings.count; ++i)
    if (!rail_state.queues->post(i, nothing))
      return drop_offer(rail_state, "its queue pairs take nothing", now);
  return {};
}

Status Connection::dial(RailState& rail_state, const RailNote& told, TimePoint now) {
  const Endpoint remote{address_of(told.facts.exchange), told.facts.port};
  peer_facts_.on[index_of(rail_state)] = told.facts;
  auto fd = sockets::dial(rail_state.rail->device.exchange, rail_state.rail->times, remote);
  if (!fd) return drop_offer(rail_state, text_of(fd.error()) + kMayTcpPass, now);
  rail_state.stream = std::make_unique<RailStream>(std::move(*fd), *this);
  place(rail_state);
  rail_state.health = Health::kProving;
  rail_state.gives_up = now + kStreamProof;
  rail_state.due = now;
  rail_state.look = RailState::kLook;
  return {};
}

Result<bool> Connection::is_welcome(RailState& rail_state) {
  RailStream& stream = *rail_state.stream;
  if (!stream.has_greeted) {
    stream.has_greeted = ZTCP_TRY(stream.pipe.greet(peer_facts_.on[index_of(rail_state)].ticket));
    if (!stream.has_greeted) return false;
    stream.pipe.limit_silence(rail_state.rail->times);
  }
  std::array<PieceStream::Told, 1> told;
  stream.pieces.expect();
  ZTCP_CHECK(stream.pieces.poll(told));
  return stream.pieces.is_welcome();
}

Status Connection::look_at_proofs(RailState& rail_state, TimePoint now) {
  if (rail_state.is_tcp()) {
    const Result<bool> welcome = is_welcome(rail_state);
    if (!welcome) return drop_offer(rail_state, text_of(welcome.error()) + kMayTcpPass, now);
    if (now >= rail_state.gives_up)
      return drop_offer(rail_state, std::string("nobody answers there") + kMayTcpPass, now);
    rail_state.due = now + rail_state.look;
    rail_state.look = std::min(2 * rail_state.look, kLongestLook);
    return *welcome ? rejoin(rail_state) : Status();
  }
  std::array<ibv_wc, kMaxQueuePairs> completions;
  const int count = rail_state.queues->poll(completions);
  const bool is_well =
      count >= 0 && std::all_of(completions.begin(), completions.begin() + count,
                                [](const ibv_wc& one) { return one.status == IBV_WC_SUCCESS; });
  if (!is_well || now >= rail_state.gives_up)
    return drop_offer(rail_state, "nothing comes back from it", now);
  rail_state.proofs -= static_cast<std::uint32_t>(count);
  rail_state.due = now + RailState::kLook;
  return rail_state.proofs == 0 ? rejoin(rail_state) : Status();
}

Status Connection::rejoin(RailState& rail_state) {
  const auto rail = static_cast<std::uint32_t>(index_of(rail_state));
  rail_state.health = Health::kUp;
  rail_state.is_awaited = false;
  rail_state.due = rail_state.gives_up = kNever;
  if (rail_state.rail->lost_to.remove(peer_.address))
    log::info("{}: the rail over {} to {} is back", rails_->name, rail_state.rail->device.place(),
              to_string(peer_));
  if (receiver_) return receiver_->rejoin_rail(rail);
  note(Step::kProven, rail_state);
  return sender_->rejoin_rail(rail);
}

}  // namespace ztcp::verbs
