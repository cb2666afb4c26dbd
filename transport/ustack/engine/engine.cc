// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/engine/engine.h"

#include <algorithm>
#include <cassert>

namespace ztcp::ustack {
namespace {

// Sessions have coarse deadlines (handshakes, redials): all are looked at when the first of them
// is due, and never more often than this, so a turn's cost does not depend on their number.
constexpr Duration kSessionScanInterval = std::chrono::milliseconds(1);

// Bijective and well mixed: unguessable ids as long as the seed is (splitmix64's finalizer).
std::uint64_t mix(std::uint64_t x) {
  x = (x ^ (x >> 30U)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27U)) * 0x94d049bb133111ebULL;
  return x ^ (x >> 31U);
}

// Nonces must not repeat session ids or sequence numbers, so they have a secret of their own.
std::array<std::uint64_t, 2> acceptor_secret(const EngineConfig& config) {
  return {mix(~config.secret[0]), mix(~config.secret[1])};
}

std::size_t pending_places(const EngineConfig& config) {
  return std::min(config.max_pending_streams, (config.stack.max_connections + 3) / 4);
}

std::optional<msg::CopyJobs> make_copies(const EngineConfig& config, Workers* workers,
                                         tcp::Stack& stack) {
  if (workers == nullptr || config.copies.workers == 0) return std::nullopt;
  return std::optional<msg::CopyJobs>(std::in_place, config.copies, *workers, stack.loans());
}

}  // namespace

Engine::Outgoing::Outgoing(Engine& its_engine, Endpoint endpoint, const msg::Cookie& cookie,
                           std::uint64_t id, msg::SendOwner& owner)
    : engine(its_engine),
      remote(endpoint),
      session(engine.config_.session, engine.config_.cluster_key, cookie, id, *this, owner) {}

Result<Stream*> Engine::Outgoing::dial(TimePoint now, StreamEvents& events) {
  return engine.stack_.connect(now, remote, events);
}

bool Engine::Outgoing::has_spare() const {
  return engine.has_spare_for(engine.stack_.connections() + 1);
}

Engine::Engine(const EngineConfig& config, Workers* workers)
    : config_(config),
      stack_(config.stack, config.secret),
      copies_(make_copies(config, workers, stack_)),
      acceptor_(config.session, config.cluster_key, pending_places(config), acceptor_secret(config),
                copies()) {
  outgoing_.reserve(config.stack.max_connections);
  // The stack is new, so its port is free.
  [[maybe_unused]] const Status listening = stack_.listen(config.listen_port, *this);
  assert(listening);
}

Engine::~Engine() = default;

void Engine::on_timers(TimePoint now) {
  if (copies_) copies_->collect(now);
  stack_.on_timers(now);
  scan_outgoing(now);
  acceptor_.on_timers(now);
  acceptor_.flush();
}

TimePoint Engine::next_deadline() const {
  return std::min({stack_.next_deadline(), acceptor_.next_deadline(), next_scan_});
}

msg::SendSession& Engine::connect(Endpoint remote, const msg::Cookie& cookie,
                                  msg::SendOwner& owner) {
  const auto& secret = config_.secret;
  const std::uint64_t id = mix(mix(secret[0] + ++session_count_) ^ secret[1]);
  outgoing_.push_back(std::make_unique<Outgoing>(*this, remote, cookie, id, owner));
  note_outgoing();
  next_scan_ = TimePoint::min();  // It dials at its first on_timers().
  return outgoing_.back()->session;
}

void Engine::destroy(msg::SendSession& session) {
  std::erase_if(outgoing_, [&](const auto& o) { return &o->session == &session; });
  note_outgoing();
}

Status Engine::listen(const msg::Cookie& cookie, msg::ListenerEvents& events) {
  return acceptor_.add_listener(cookie, events);
}

StreamEvents* Engine::on_accept(TimePoint now, Stream& stream, Endpoint remote) {
  // The new one is among the connections.
  return acceptor_.on_accept(now, stream, remote, has_spare_for(stack_.connections()));
}

// Whether so many connections leave a place to each session that may still come, and to those who
// knock: then some may be flows that their sessions could do without.
bool Engine::has_spare_for(std::size_t connections) const {
  const std::size_t max = config_.session.max_sessions;
  const std::size_t to_come = max - std::min(max, sessions());
  return connections + to_come + pending_places(config_) <= config_.stack.max_connections;
}

// Not before the last scan is long enough ago.
void Engine::wake_at(TimePoint when) {
  next_scan_ = std::min(next_scan_, std::max(when, earliest_scan_));
}

void Engine::scan_outgoing(TimePoint now) {
  if (now < next_scan_) return;
  next_scan_ = kNever;
  earliest_scan_ = now + kSessionScanInterval;
  // An event may start another session.
  // NOLINTNEXTLINE(modernize-loop-convert)
  for (std::size_t i = 0; i < outgoing_.size(); ++i) {
    msg::SendSession& session = outgoing_[i]->session;
    if (session.next_deadline() <= now) session.on_timers(now);
    wake_at(session.next_deadline());
  }
}

std::size_t Engine::unfinished() const {
  const auto leaving = std::count_if(outgoing_.begin(), outgoing_.end(),
                                     [](const auto& o) { return o->session.is_leaving(); });
  return stack_.unfinished() + static_cast<std::size_t>(leaving);
}

}  // namespace ztcp::ustack
