// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/engine.h"

#include <algorithm>
#include <cassert>
#include <vector>

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

}  // namespace

// A session and how it reaches its peer.
struct Engine::Outgoing final : msg::Dialer {
  Outgoing(Impl& engine_impl, Endpoint endpoint, const msg::Cookie& cookie, std::uint64_t id,
           msg::SessionOwner& owner);
  Result<Stream*> dial(TimePoint now, StreamEvents& events) override;
  bool has_spare() const override;
  void wake_at(TimePoint when) override;

  Impl& engine;
  const Endpoint remote;
  msg::SendSession session;
};

struct Engine::Impl final : tcp::StreamAcceptor {
  explicit Impl(const EngineConfig& c)
      : config(c),
        stack(c.stack, c.secret),
        acceptor(c.session, c.cluster_key, pending_places(c), acceptor_secret(c)) {
    outgoing.reserve(c.stack.max_connections);
    // The stack is new, so its port is free.
    [[maybe_unused]] const Status listening = stack.listen(c.listen_port, *this);
    assert(listening);
  }

  StreamEvents* on_accept(TimePoint now, Stream& stream, Endpoint remote) override {
    // The new one is among the connections.
    return acceptor.on_accept(now, stream, remote, has_spare_for(stack.connections()));
  }

  std::size_t sessions() const { return outgoing.size() + acceptor.sessions(); }

  // Whether so many connections leave a place to each session that may still come, and to those who
  // knock: then some may be flows that their sessions could do without.
  bool has_spare_for(std::size_t count) const {
    const std::size_t max = config.session.max_sessions;
    const std::size_t to_come = max - std::min(max, sessions());
    return count + to_come + pending_places(config) <= config.stack.max_connections;
  }

  void note_outgoing() { acceptor.set_other_sessions(outgoing.size()); }

  // Not before the last scan is long enough ago.
  void wake_at(TimePoint when) { next_scan = std::min(next_scan, std::max(when, earliest_scan)); }

  void scan_sessions(TimePoint now) {
    if (now < next_scan) return;
    next_scan = kNever;
    earliest_scan = now + kSessionScanInterval;
    // An event may start another session.
    // NOLINTNEXTLINE(modernize-loop-convert)
    for (std::size_t i = 0; i < outgoing.size(); ++i) {
      msg::SendSession& session = outgoing[i]->session;
      if (session.next_deadline() <= now) session.on_timers(now);
      wake_at(session.next_deadline());
    }
  }

  EngineConfig config;
  tcp::Stack stack;
  msg::Acceptor acceptor;
  std::vector<std::unique_ptr<Outgoing>> outgoing;
  // Not later than the earliest deadline of the outgoing sessions, but for what must lie between
  // two scans.
  TimePoint next_scan = kNever;
  TimePoint earliest_scan = TimePoint::min();
  std::uint64_t session_count = 0;
};

Engine::Outgoing::Outgoing(Impl& engine_impl, Endpoint endpoint, const msg::Cookie& cookie,
                           std::uint64_t id, msg::SessionOwner& owner)
    : engine(engine_impl),
      remote(endpoint),
      session(engine.config.session, engine.config.cluster_key, cookie, id, *this, owner) {}

Result<Stream*> Engine::Outgoing::dial(TimePoint now, StreamEvents& events) {
  return engine.stack.connect(now, remote, events);
}

bool Engine::Outgoing::has_spare() const {
  return engine.has_spare_for(engine.stack.connections() + 1);
}

void Engine::Outgoing::wake_at(TimePoint when) { engine.wake_at(when); }

Engine::Engine(const EngineConfig& config) : impl_(std::make_unique<Impl>(config)) {}
Engine::~Engine() = default;

void Engine::on_frames(TimePoint now, std::span<RxFrame> frames) {
  impl_->stack.on_frames(now, frames);
}

void Engine::on_timers(TimePoint now) {
  impl_->stack.on_timers(now);
  impl_->scan_sessions(now);
  impl_->acceptor.on_timers(now);
  impl_->acceptor.flush(now);
}

std::size_t Engine::collect(TimePoint now, std::span<TxFrame> out) {
  return impl_->stack.collect(now, out);
}

TimePoint Engine::next_deadline() const {
  return std::min(
      {impl_->stack.next_deadline(), impl_->acceptor.next_deadline(), impl_->next_scan});
}

std::size_t Engine::take_released(std::span<RxFrame> out) {
  return impl_->stack.take_released(out);
}

void Engine::note_poll_gap(TimePoint now, Duration gap) { impl_->stack.note_poll_gap(now, gap); }

bool Engine::is_full() const { return impl_->sessions() >= max_sessions(); }

std::size_t Engine::max_sessions() const { return impl_->config.session.max_sessions; }

msg::SendSession& Engine::connect(Endpoint remote, const msg::Cookie& cookie,
                                  msg::SessionOwner& owner) {
  const auto& secret = impl_->config.secret;
  const std::uint64_t id = mix(mix(secret[0] + ++impl_->session_count) ^ secret[1]);
  impl_->outgoing.push_back(std::make_unique<Outgoing>(*impl_, remote, cookie, id, owner));
  impl_->note_outgoing();
  impl_->next_scan = TimePoint::min();  // It dials at its first on_timers().
  return impl_->outgoing.back()->session;
}

void Engine::destroy(msg::SendSession& session) {
  std::erase_if(impl_->outgoing, [&](const auto& o) { return &o->session == &session; });
  impl_->note_outgoing();
}

Status Engine::listen(const msg::Cookie& cookie, msg::ListenerEvents& events) {
  return impl_->acceptor.add_listener(cookie, events);
}

void Engine::unlisten(const msg::Cookie& cookie) { impl_->acceptor.remove_listener(cookie); }

void Engine::probe(Ipv4Address remote) { impl_->stack.probe(remote); }
TimePoint Engine::heard_from(Ipv4Address remote) const { return impl_->stack.heard_from(remote); }

std::size_t Engine::unfinished() const {
  const auto leaving = std::count_if(impl_->outgoing.begin(), impl_->outgoing.end(),
                                     [](const auto& o) { return o->session.is_leaving(); });
  return impl_->stack.unfinished() + static_cast<std::size_t>(leaving);
}
const tcp::Counters& Engine::tcp_counters() const { return impl_->stack.counters(); }
const msg::AcceptorCounters& Engine::acceptor_counters() const {
  return impl_->acceptor.counters();
}

}  // namespace ztcp::ustack
