// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/msg/acceptor.h"

#include <algorithm>
#include <cstring>
#include <new>
#include <utility>

#include "core/pending_victim.h"
#include "transport/msg/handshake.h"

namespace ztcp::msg {

std::size_t Acceptor::CookieHash::operator()(const Cookie& cookie) const {
  std::size_t bits = 0;
  std::memcpy(&bits, cookie.data(), sizeof bits);
  return bits;
}

Acceptor::Acceptor(const SessionSettings& settings, const ClusterKey& key,
                   std::size_t max_pending_streams, std::array<std::uint64_t, 2> secret,
                   CopyJobs* copies)
    : settings_(settings),
      key_(key),
      max_pending_(max_pending_streams),
      secret_(secret),
      copies_(copies) {
  pending_.reserve(max_pending_streams);
  closed_.reserve(kClosedRemembered);
}

Acceptor::~Acceptor() {
  for (const auto& flow : pending_) flow->abort();
  for (const auto& [id, session] : sessions_) session->orphan();
  if (budget_ != nullptr) budget_->remove(sessions_.size());
}

Status Acceptor::add_listener(const Cookie& cookie, ListenerEvents& events) {
  if (!listeners_.emplace(cookie, &events).second)
    return fail(Errc::kBusy, "Acceptor::add_listener");
  return {};
}

StreamEvents* Acceptor::on_accept(TimePoint now, Stream& stream, Endpoint remote, bool has_spare,
                                  std::optional<std::uint32_t> rx_queue) {
  reap();
  if (pending_.size() >= max_pending_ && !push_out_oldest()) {
    ++counters_.refused_full;
    return nullptr;
  }
  const TimePoint deadline = now + settings_.handshake_timeout;
  try {
    pending_.push_back(
        std::make_unique<RecvFlow>(*this, stream, remote, deadline, has_spare, rx_queue));
  } catch (const std::bad_alloc&) {
    ++counters_.refused_no_memory;
    return nullptr;
  }
  wake_at(deadline);
  return pending_.back().get();
}

// A sender's hello comes with its last ACK or right after it, so among the silent streams of one
// address the oldest is the least likely to be a sender's; and among refused ones, the oldest has
// had the longest time to read the refusal.
bool Acceptor::push_out_oldest() {
  const auto oldest = pending_victim(pending_, [](const auto& flow) -> const IpAddress* {
    const bool may_go =
        flow->state() == RecvFlow::State::kHello || flow->state() == RecvFlow::State::kDraining;
    return may_go ? &flow->remote().address : nullptr;
  });
  if (oldest == pending_.end()) return false;
  ++counters_.strangers.pushed_out;
  (*oldest)->abort();
  pending_.erase(oldest);
  return true;
}

// A refused flow stays pending until its sender closes the stream: after a close from here TCP
// would wait for the peer, and a stranger could fill the connection table with such streams.
void Acceptor::refuse(TimePoint now, RecvFlow& flow, const Refusal& refusal) {
  switch (refusal.reason) {
    case Reason::kVersion:
      ++counters_.strangers.other_version;
      break;
    case Reason::kUnknownCookie:
      ++counters_.strangers.unknown_cookie;
      break;
    case Reason::kKeyMissing:
    case Reason::kKeyUnexpected:
    case Reason::kKeyMismatch:
      ++counters_.strangers.bad_key;
      break;
    case Reason::kFull:  // See reason.h for the 0.
      ++(refusal.ours != 0 ? counters_.refused_full : counters_.refused_flows);
      break;
    case Reason::kOutOfMemory:
      ++counters_.refused_no_memory;
      break;
    case Reason::kOtherQueue:
      ++counters_.refused_queue;
      break;
    default:
      ++counters_.refused_stale;
      break;
  }
  flow.rx_place.release();
  if (flow.send(refusal)) {
    flow.drain(now + RecvFlow::kLinger);
    wake_at(flow.deadline());
  } else {
    flow.abort();
    has_dead_ = true;
  }
}

void Acceptor::on_version(TimePoint now, RecvFlow& flow, std::uint32_t version) {
  refuse(now, flow, Refusal{Reason::kVersion, kWireVersion, version});
}

void Acceptor::on_stray(RecvFlow& flow) {
  ++counters_.strangers.bad_magic;
  flow.abort();
  has_dead_ = true;
}

void Acceptor::on_pending_gone(RecvFlow& flow) {
  // A sender that cannot verify our challenge closes without a record.
  if (flow.state_ == RecvFlow::State::kProof) ++counters_.strangers.bad_key;
  if (flow.state_ == RecvFlow::State::kDraining) ++counters_.refused_gone;
  flow.state_ = RecvFlow::State::kGone;
  has_dead_ = true;
}

// Decides a hello's request: a running session's next flow, a new session, or a refusal.
Acceptor::Verdict Acceptor::judge(const RecvFlow& flow) {
  const Hello& hello = flow.hello();
  if (const auto found = sessions_.find(hello.session); found != sessions_.end()) {
    RecvSession& session = *found->second;
    if (!equal_in_constant_time(session.cookie(), hello.cookie) || !session.takes_flows())
      return {.refusal = how_it_ended(hello)};
    if (hello.flow >= session.flows_granted()) return {.refusal = {Reason::kProtocol}};
    if (hello.epoch <= session.epoch(hello.flow))
      return {.refusal = {Reason::kStaleEpoch, session.epoch(hello.flow), hello.epoch}};
    // A flow that was accepted before may resume in its own slot.
    if (hello.flow != 0 && session.epoch(hello.flow) == 0 && !flow.is_to_spare())
      return {.refusal = {Reason::kFull}};
    return {.session = &session};
  }
  if (places_ != nullptr) {
    const auto place = places_->find(hello.session);
    if (place && *place != place_) return {.refusal = {Reason::kOtherQueue, *place, place_}};
  }
  if (!hello.is_new || hello.is_last()) return {.refusal = how_it_ended(hello)};
  const auto listener = listeners_.find(hello.cookie);
  if (listener == listeners_.end()) return {.refusal = {Reason::kUnknownCookie}};
  if (const Refusal refusal = refusal_for_room(); refusal.reason != Reason::kNone)
    return {.refusal = refusal};
  if (places_ != nullptr)
    if (const auto better = places_->better_place(place_, hello.epoch))
      return {.refusal = {Reason::kOtherQueue, *better, place_}};
  return {.listener = listener->second};
}

// If the NIC has room and this acceptor has none, another acceptor takes the session.
Refusal Acceptor::refusal_for_room() const {
  if (budget_ != nullptr && budget_->left() == 0) return {Reason::kFull, budget_->most(), 0};
  if (!is_full()) return {Reason::kNone, 0, 0};
  if (places_ != nullptr)
    if (const auto other = places_->place_with_room(place_); other && *other != place_)
      return {Reason::kOtherQueue, *other, place_};
  return {Reason::kFull, settings_.max_sessions, 0};
}

void Acceptor::note_room() {
  if (places_ == nullptr || is_full() == is_known_full_) return;
  is_known_full_ = is_full();
  places_->note_full(place_, is_known_full_);
}

Refusal Acceptor::how_it_ended(const Hello& hello) const {
  for (const Closed& closed : closed_)
    if (closed.session == hello.session && equal_in_constant_time(closed.cookie, hello.cookie))
      return closed.how;
  return {Reason::kUnknownSession, 0, 0};
}

void Acceptor::remember_closed(const RecvSession& session, const Refusal& how) {
  const Closed closed{session.id(), session.cookie(), how};
  if (closed_.size() < kClosedRemembered) {
    closed_.push_back(closed);
  } else {
    Closed& oldest = closed_[closed_count_ % kClosedRemembered];
    forget_place(oldest.session);
    oldest = closed;
  }
  ++closed_count_;
}

void Acceptor::forget_place(std::uint64_t session) {
  if (places_ != nullptr) places_->forget(session, place_);
}

void Acceptor::on_hello(TimePoint now, RecvFlow& flow, const Hello& hello) {
  flow.hello_ = hello;
  if (hello.has_key != is_set(key_))
    return refuse(now, flow, Refusal{is_set(key_) ? Reason::kKeyMissing : Reason::kKeyUnexpected});
  if (!is_set(key_)) return admit(now, flow);
  if (const Verdict verdict = judge(flow); verdict.is_refused())
    return refuse(now, flow, verdict.refusal);
  flow.challenge = receiver_nonce(secret_, challenges_++);
  flow.state_ = RecvFlow::State::kProof;
  if (!flow.send(Challenge{flow.challenge, receiver_mac(key_, hello, flow.challenge)})) {
    flow.abort();
    has_dead_ = true;
  }
}

void Acceptor::on_proof(TimePoint now, RecvFlow& flow, const Proof& proof) {
  if (!equal_in_constant_time(proof.mac, sender_mac(key_, flow.hello_, flow.challenge)))
    return refuse(now, flow, Refusal{Reason::kKeyMismatch});
  admit(now, flow);
}

// The session's first flow may be reserved for small messages and credit.
bool Acceptor::carries_bulk(const Hello& hello) const {
  return hello.flow != 0 || !settings_.keeps_first_flow_free ||
         std::min<std::uint32_t>(settings_.flows, hello.flows_wanted) == 1;
}

// `session`: null for a new one. Each dial has an epoch of its own, so the epochs since the flow
// was last up count its tries. A resumed flow is accepted on any queue: that it is up again matters
// more.
bool Acceptor::take_rx_place(RecvFlow& flow, const RecvSession* session) {
  const auto queue = flow.rx_queue();
  if (rx_places_ == nullptr || !queue || !carries_bulk(flow.hello())) return true;
  if (session != nullptr && session->epoch(flow.index()) != 0)
    rx_places_->take_back(*queue);
  else if (!rx_places_->take(*queue, flow.hello().epoch))
    return false;
  flow.rx_place = RxPlace(*rx_places_, *queue);
  return true;
}

// Judged again: the state may have changed since the challenge.
void Acceptor::admit(TimePoint now, RecvFlow& flow) {
  const Verdict verdict = judge(flow);
  if (verdict.is_refused()) return refuse(now, flow, verdict.refusal);
  if (flow.hello().is_last()) {
    verdict.session->on_sender_left(now,
                                    flow.hello().aborts ? Reason::kAborted : Reason::kProcessEnded);
    return refuse(now, flow, Refusal{Reason::kUnknownSession});
  }
  if (!take_rx_place(flow, verdict.session)) {
    ++counters_.refused_rx_queue;
    return refuse(now, flow, Refusal{Reason::kOtherQueue});
  }
  if (verdict.session != nullptr) return verdict.session->attach(now, take_pending(flow));
  try {
    // Another flow of the session may have been faster, on another queue.
    if (places_ != nullptr && !places_->take(flow.hello().session, place_))
      return refuse(now, flow, Refusal{Reason::kOtherQueue});
    if (RecvSession* const session = open_session(now, flow, *verdict.listener))
      return session->attach(now, take_pending(flow));
    flow.abort();
    has_dead_ = true;
  } catch (const std::bad_alloc&) {
    forget_place(flow.hello().session);
    refuse(now, flow, Refusal{Reason::kOutOfMemory});
  }
}

// Null: the listener has ended it. Reserves all memory that the acceptor needs for a session; after
// std::bad_alloc nothing of it remains.
RecvSession* Acceptor::open_session(TimePoint now, const RecvFlow& flow, ListenerEvents& listener) {
  auto session = std::make_unique<RecvSession>(*this, settings_, flow.hello(), next_allowance(),
                                               flow.remote());
  if (places_ != nullptr) places_->note_begun(place_, flow.hello().epoch);
  budget_taken_bytes_ += session->allowance_bytes() - Bounce::kMinAllowanceBytes;
  const std::uint64_t id = session->id();
  sessions_.emplace(id, session.get());
  if (budget_ != nullptr) budget_->add();
  note_room();
  owing_.reserve(sessions_.size());
  flushing_.reserve(sessions_.size());
  to_reap_.reserve(max_pending_ + kMaxFlows * sessions_.size());
  listener.on_session(now, std::move(session));
  const auto kept = sessions_.find(id);
  return kept == sessions_.end() || !kept->second->is_running() ? nullptr : kept->second;
}

std::uint32_t Acceptor::next_allowance() const {
  constexpr std::size_t kLeast = Bounce::kMinAllowanceBytes;
  const std::size_t most = std::max<std::size_t>(settings_.eager_allowance_bytes, kLeast) - kLeast;
  const std::size_t share =
      (settings_.eager_budget_bytes - budget_taken_bytes_) / settings_.eager_shares;
  return static_cast<std::uint32_t>(kLeast + std::min(share, most) / kLeast * kLeast);
}

std::unique_ptr<RecvFlow> Acceptor::take_pending(RecvFlow& flow) {
  const auto found = std::find_if(pending_.begin(), pending_.end(),
                                  [&](const auto& pending) { return pending.get() == &flow; });
  std::unique_ptr<RecvFlow> taken = std::move(*found);
  pending_.erase(found);
  return taken;
}

void Acceptor::remove_session(RecvSession& session) {
  if (sessions_.erase(session.id()) != 0 && budget_ != nullptr) budget_->remove(1);
  note_room();
  if (places_ != nullptr) places_->note_ended(place_);
  const auto is_it = [&](const Closed& closed) { return closed.session == session.id(); };
  if (places_ != nullptr && std::none_of(closed_.begin(), closed_.end(), is_it))
    forget_place(session.id());
  budget_taken_bytes_ -= session.allowance_bytes() - Bounce::kMinAllowanceBytes;
  std::replace(owing_.begin(), owing_.end(), &session, static_cast<RecvSession*>(nullptr));
  std::replace(flushing_.begin(), flushing_.end(), &session, static_cast<RecvSession*>(nullptr));
}

void Acceptor::reap() {
  to_reap_.clear();
  if (!std::exchange(has_dead_, false)) return;
  std::erase_if(pending_, [](const auto& flow) { return !flow->is_alive(); });
}

void Acceptor::flush() {
  reap();
  if (owing_.empty()) return;
  flushing_.swap(owing_);
  for (RecvSession* session : flushing_)
    if (session != nullptr) session->flush_owed();
  flushing_.clear();
}

void Acceptor::on_timers(TimePoint now) {
  if (now < next_deadline_) return;
  next_deadline_ = kNever;
  for (const auto& flow : pending_) {
    if (!flow->is_alive()) continue;
    if (flow->deadline() <= now) {
      if (flow->state() != RecvFlow::State::kDraining) ++counters_.strangers.timed_out;
      flow->abort();
      has_dead_ = true;
    } else {
      wake_at(flow->deadline());
    }
  }
  for (const auto& [id, session] : sessions_) {
    session->on_timers(now);
    wake_at(session->next_deadline());
  }
}

}  // namespace ztcp::msg
