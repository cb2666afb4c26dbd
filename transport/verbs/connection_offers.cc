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

using State = Strand::State;
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
  for (const Strand& strand : strands_) out = std::min(out, strand.due);
  return std::min(out, awaits_until_);
}

// Beside what serves from the first: one that has TCP alone begins with it, or not at all.
void Connection::await_tcp(TimePoint until) {
  if (is_lost()) return;
  for (Strand& strand : strands_) {
    strand.is_awaited = strand.is_tcp();
    if (strand.is_awaited) awaits_until_ = until;
  }
}

void Connection::hurry(const Rail& rail, TimePoint now) {
  for (Strand& strand : strands_) {
    if (strand.rail.get() != &rail || strand.state != State::kDown) continue;
    if (sender_)
      strand.due = now;
    else
      note(Step::kAsk, strand);
  }
}

Status Connection::advance(TimePoint now) {
  if (is_aborted_) return {};
  if (awaits_until_ <= now) {
    awaits_until_ = kNever;
    for (Strand& strand : strands_) strand.is_awaited = false;
    if (is_lost())
      return ztcp::fail(Errc::kTimedOut,
                        "no RDMA rail serves, and none of TCP has come up in time");
  }
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
        ZTCP_CHECK(drop_offer(strand, "the peer does not answer", now));
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

void Connection::offer(Strand& strand, TimePoint now) {
  strand.due = strand.rail->is_dead() ? kNever : now + strand.pause;
  if (!strand.is_tcp()) {
    if (strand.rail->is_dead()) return;
    if (strand.rail->is_port_down.load(std::memory_order_relaxed)) return;
    auto made = QueuePairs::create(strand.rail->device, strand.rail->address(), strand.settings);
    if (!made) return;
    strand.queues = std::move(*made);
  }
  strand.is_peer_fenced = false;
  ++strand.epoch;
  strand.state = State::kOffered;
  strand.due = now + kProof;
  note(Step::kOffer, strand);
}

// Nothing but proofs has gone over it.
Status Connection::drop_offer(Strand& strand, const std::string& why, TimePoint now) {
  if (strand.rail->lost_to.add(peer_.address))
    log::warn("{}: no rail over {} to {}: {}", rails_->name, strand.rail->device.place(),
              to_string(peer_), why);
  strand.queues.reset();
  strand.stream.reset();
  strand.state = State::kDown;
  strand.pause = std::clamp(2 * strand.pause, Strand::kFirstPause, kLongestPause);
  strand.due = now + strand.pause;
  note(Step::kFenced, strand);
  return is_lost() ? ztcp::fail(Errc::kTimedOut, "the only rail") : Status();
}

Status Connection::accept(Strand& strand, const RailNote& told) {
  const auto refuse = [&] {
    strand.queues.reset();
    strand.ticket = {};
    notes_.add(make_note(Step::kFenced, told.rail, told.epoch));
    return Status();
  };
  if (!receiver_ || strand.state != State::kDown || told.epoch <= strand.epoch) {
    notes_.add(make_note(Step::kFenced, told.rail, told.epoch));
    return {};
  }
  if (!open(strand, told)) return refuse();
  strand.epoch = told.epoch;
  strand.is_peer_fenced = false;
  strand.state = State::kAccepted;
  note(Step::kAccept, strand);
  return receiver_->reopen_rail(static_cast<std::uint32_t>(index_of(strand)));
}

// What the sender is to be joined to.
bool Connection::open(Strand& strand, const RailNote& told) {
  if (strand.is_tcp()) {
    place(strand);  // To nothing, until it is dialled.
    return strand.rail->listening && getrandom(strand.ticket.data(), strand.ticket.size(), 0) ==
                                         static_cast<ssize_t>(strand.ticket.size());
  }
  if (!strand.rail->is_healthy()) return false;
  auto made = QueuePairs::create(strand.rail->device, strand.rail->address(), strand.settings);
  if (!made) return false;
  strand.queues = std::move(*made);
  return join_again(strand, told);
}

bool Connection::take_stream(const Ticket& ticket, link::Fd& fd) {
  if (is_aborted_ || ticket == Ticket{}) return false;
  for (Strand& strand : strands_) {
    if (strand.state != State::kAccepted || strand.ticket != ticket) continue;
    strand.ticket = {};
    strand.stream = std::make_unique<RailStream>(std::move(fd), *this);
    strand.stream->pieces.welcome();
    place(strand);
    return true;
  }
  return false;
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

Status Connection::prove(Strand& strand, const RailNote& told, TimePoint now) {
  if (strand.is_tcp()) return dial(strand, told, now);
  if (!join_again(strand, told)) return drop_offer(strand, "its queue pairs do not fit", now);
  strand.state = State::kProving;
  strand.gives_up = now + kProof;
  strand.due = now;
  strand.proofs = strand.settings.count;
  WorkRequest nothing;
  nothing.is_signalled = true;
  nothing.remote = peer_facts_.memory_address;
  nothing.rkey = told.facts.memory_rkey;
  for (std::uint32_t i = 0; i < strand.settings.count; ++i)
    if (!strand.queues->post(i, nothing))
      return drop_offer(strand, "its queue pairs take nothing", now);
  return {};
}

Status Connection::dial(Strand& strand, const RailNote& told, TimePoint now) {
  const Endpoint remote{address_of(told.facts.exchange), told.facts.port};
  peer_facts_.on[index_of(strand)] = told.facts;
  auto fd = sockets::dial(strand.rail->device.exchange, strand.rail->times, remote);
  if (!fd) return drop_offer(strand, text_of(fd.error()) + kMayTcpPass, now);
  strand.stream = std::make_unique<RailStream>(std::move(*fd), *this);
  place(strand);
  strand.state = State::kProving;
  strand.gives_up = now + kStreamProof;
  strand.due = now;
  strand.look = Strand::kLook;
  return {};
}

Result<bool> Connection::is_welcome(Strand& strand) {
  RailStream& stream = *strand.stream;
  if (!stream.has_greeted) {
    stream.has_greeted = ZTCP_TRY(stream.pipe.greet(peer_facts_.on[index_of(strand)].ticket));
    if (!stream.has_greeted) return false;
    stream.pipe.limit_silence(strand.rail->times);
  }
  std::array<PieceStream::Told, 1> told;
  stream.pieces.expect();
  ZTCP_CHECK(stream.pieces.poll(told));
  return stream.pieces.is_welcome();
}

Status Connection::look_at_proofs(Strand& strand, TimePoint now) {
  if (strand.is_tcp()) {
    const Result<bool> welcome = is_welcome(strand);
    if (!welcome) return drop_offer(strand, text_of(welcome.error()) + kMayTcpPass, now);
    if (now >= strand.gives_up)
      return drop_offer(strand, std::string("nobody answers there") + kMayTcpPass, now);
    strand.due = now + strand.look;
    strand.look = std::min(2 * strand.look, kLongestLook);
    return *welcome ? rejoin(strand) : Status();
  }
  std::array<ibv_wc, kMaxQueuePairs> completions;
  const int count = strand.queues->poll(completions);
  const bool is_well =
      count >= 0 && std::all_of(completions.begin(), completions.begin() + count,
                                [](const ibv_wc& one) { return one.status == IBV_WC_SUCCESS; });
  if (!is_well || now >= strand.gives_up)
    return drop_offer(strand, "nothing comes back from it", now);
  strand.proofs -= static_cast<std::uint32_t>(count);
  strand.due = now + Strand::kLook;
  return strand.proofs == 0 ? rejoin(strand) : Status();
}

Status Connection::rejoin(Strand& strand) {
  const auto rail = static_cast<std::uint32_t>(index_of(strand));
  strand.state = State::kUp;
  strand.is_awaited = false;
  strand.due = strand.gives_up = kNever;
  if (strand.rail->lost_to.remove(peer_.address))
    log::info("{}: the rail over {} to {} is back", rails_->name, strand.rail->device.place(),
              to_string(peer_));
  if (receiver_) return receiver_->rejoin_rail(rail);
  note(Step::kProven, strand);
  return sender_->rejoin_rail(rail);
}

}  // namespace ztcp::verbs
