// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/engine.h"

#include <algorithm>
#include <cassert>
#include <vector>

namespace ztcp::ustack {
namespace {

// Sessions have coarse deadlines (handshakes, redials), so looking at all of them this seldom
// keeps a turn's cost independent of their number.
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

// The other half of the table is for first flows alone, ours and our peers'.
std::size_t spare_connections(std::size_t max_connections) { return max_connections / 2; }

// A session and how it reaches its peer.
class Outgoing final : public msg::Dialer {
 public:
  Outgoing(tcp::Stack& stack, Endpoint remote, const EngineConfig& config,
           const msg::Cookie& cookie, std::uint64_t id, msg::SessionOwner& owner)
      : stack_(stack),
        remote_(remote),
        max_connections_(config.stack.max_connections),
        session(config.session, config.cluster_key, cookie, id, *this, owner) {}

  Result<Stream*> dial(TimePoint now, StreamEvents& events) override {
    return stack_.connect(now, remote_, events);
  }
  bool has_spare() const override {
    return stack_.connections() < spare_connections(max_connections_);
  }

 private:
  tcp::Stack& stack_;
  Endpoint remote_;
  std::size_t max_connections_;

 public:
  msg::SendSession session;
};

}  // namespace

struct Engine::Impl final : tcp::StreamAcceptor {
  explicit Impl(const EngineConfig& c)
      : config(c),
        stack(c.stack, c.secret),
        acceptor(c.session, c.cluster_key,
                 std::min(c.max_pending_streams, (c.stack.max_connections + 3) / 4),
                 acceptor_secret(c)) {
    outgoing.reserve(c.stack.max_connections);
    // The stack is new, so its port is free.
    [[maybe_unused]] const Status listening = stack.listen(c.listen_port, *this);
    assert(listening);
  }

  StreamEvents* on_accept(TimePoint now, Stream& stream, Endpoint remote) override {
    // The new one is among them.
    const bool has_spare = stack.connections() <= spare_connections(config.stack.max_connections);
    return acceptor.on_accept(now, stream, remote, has_spare);
  }

  void scan_sessions(TimePoint now) {
    if (now < next_scan) return;
    next_scan = outgoing.empty() ? kNever : now + kSessionScanInterval;
    // An event may start another session.
    // NOLINTNEXTLINE(modernize-loop-convert)
    for (std::size_t i = 0; i < outgoing.size(); ++i) {
      msg::SendSession& session = outgoing[i]->session;
      if (session.next_deadline() <= now) session.on_timers(now);
    }
  }

  // Asked only by those about to sleep, so all sessions are looked at: any event may have set one.
  TimePoint session_deadline() const {
    TimePoint deadline = kNever;
    for (const auto& o : outgoing) deadline = std::min(deadline, o->session.next_deadline());
    return deadline == kNever ? kNever : std::max(deadline, next_scan);
  }

  EngineConfig config;
  tcp::Stack stack;
  msg::Acceptor acceptor;
  std::vector<std::unique_ptr<Outgoing>> outgoing;
  TimePoint next_scan = kNever;
  std::uint64_t session_count = 0;
};

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
      {impl_->stack.next_deadline(), impl_->acceptor.next_deadline(), impl_->session_deadline()});
}

std::size_t Engine::take_released(std::span<RxFrame> out) {
  return impl_->stack.take_released(out);
}

void Engine::note_poll_gap(TimePoint now, Duration gap) { impl_->stack.note_poll_gap(now, gap); }

msg::SendSession& Engine::connect(Endpoint remote, const msg::Cookie& cookie,
                                  msg::SessionOwner& owner) {
  const auto& secret = impl_->config.secret;
  const std::uint64_t id = mix(mix(secret[0] + ++impl_->session_count) ^ secret[1]);
  impl_->outgoing.push_back(
      std::make_unique<Outgoing>(impl_->stack, remote, impl_->config, cookie, id, owner));
  impl_->next_scan = TimePoint::min();  // It dials at its first on_timers().
  return impl_->outgoing.back()->session;
}

void Engine::destroy(msg::SendSession& session) {
  std::erase_if(impl_->outgoing, [&](const auto& o) { return &o->session == &session; });
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
