// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/msg/sessions.h"

#include <algorithm>
#include <chrono>

namespace ztcp::msg {
namespace {

// Sessions have coarse deadlines (handshakes, redials): all are checked when the first of them is
// due, and never more often than this, so a turn's cost does not depend on their number.
constexpr Duration kScanInterval = std::chrono::milliseconds(1);

// Bijective and well mixed: unguessable ids as long as the seed is (splitmix64's finalizer).
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31U);
}

// Nonces must not repeat session ids or sequence numbers, so they have a secret of their own.
std::array<std::uint64_t, 2> acceptor_secret(const std::array<std::uint64_t, 2>& secret) {
  return {mix(~secret[0]), mix(~secret[1])};
}

}  // namespace

Sessions::Outgoing::Outgoing(Sessions& its_sessions, Endpoint remote, const Cookie& cookie,
                             std::uint64_t id, SendOwner& owner, const DialSettings& its_settings)
    : sessions(its_sessions),
      endpoint(remote),
      settings(its_settings),
      session(sessions.settings_, sessions.key_, cookie, id, *this, owner) {}

Sessions::Sessions(const SessionSettings& settings, const ClusterKey& key,
                   std::size_t max_pending_streams, std::array<std::uint64_t, 2> secret,
                   StreamSource& source, CopyJobs* copies)
    : settings_(settings),
      key_(key),
      secret_(secret),
      source_(source),
      acceptor_(settings, key, max_pending_streams, acceptor_secret(secret), copies) {
  outgoing_.reserve(settings.max_sessions);
  acceptor_.dial_by(source);
}

Sessions::~Sessions() {
  if (budget_ != nullptr) budget_->remove(outgoing_.size());
}

SendSession& Sessions::connect(Endpoint remote, const Cookie& cookie, SendOwner& owner,
                               const DialSettings& settings) {
  const std::uint64_t id = mix(mix(secret_[0] + ++session_count_) ^ secret_[1]);
  outgoing_.push_back(std::make_unique<Outgoing>(*this, remote, cookie, id, owner, settings));
  if (budget_ != nullptr) budget_->add();
  note_outgoing();
  next_scan_ = TimePoint::min();  // It dials in its first on_timers().
  return outgoing_.back()->session;
}

void Sessions::destroy(SendSession& session) {
  const std::size_t gone =
      std::erase_if(outgoing_, [&](const auto& o) { return &o->session == &session; });
  if (budget_ != nullptr) budget_->remove(gone);
  note_outgoing();
}

std::size_t Sessions::finishing() const {
  return static_cast<std::size_t>(std::count_if(
      outgoing_.begin(), outgoing_.end(), [](const auto& o) { return o->session.is_finishing(); }));
}

void Sessions::on_timers(TimePoint now) {
  scan_outgoing(now);
  acceptor_.on_timers(now);
  acceptor_.flush();
}

TimePoint Sessions::next_deadline() const {
  return std::min(acceptor_.next_deadline(), next_scan_);
}

// At least kScanInterval after the last scan.
void Sessions::wake_at(TimePoint when) {
  next_scan_ = std::min(next_scan_, std::max(when, earliest_scan_));
}

// Sessions with the same peer, as one NCCL channel has each.
bool Sessions::is_peer_answering_since(TimePoint now, TimePoint since, const Outgoing& doubtful) {
  constexpr int kMostAsked = 4;
  int asked = 0;
  for (const auto& other : outgoing_) {
    if (other.get() == &doubtful || other->endpoint != doubtful.endpoint ||
        !other->session.is_serving())
      continue;
    if (other->session.is_answering_since(now, since)) return true;
    if (++asked == kMostAsked) break;
  }
  return false;
}

void Sessions::scan_outgoing(TimePoint now) {
  if (now < next_scan_) return;
  next_scan_ = kNever;
  earliest_scan_ = now + kScanInterval;
  // An event may start another session.
  // NOLINTNEXTLINE(modernize-loop-convert)
  for (std::size_t i = 0; i < outgoing_.size(); ++i) {
    SendSession& session = outgoing_[i]->session;
    if (session.next_deadline() <= now) session.on_timers(now);
    wake_at(session.next_deadline());
  }
}

}  // namespace ztcp::msg
