// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/engine/engine.h"

#include <algorithm>
#include <cassert>
#include <optional>
#include <utility>

namespace ztcp::ustack {
namespace {

std::size_t pending_places(const EngineConfig& config) {
  return std::min(config.max_pending_streams, (config.stack.max_connections + 3) / 4);
}

std::optional<msg::CopyJobs> make_copies(const EngineConfig& config, Workers* workers,
                                         tcp::Stack& stack) {
  if (workers == nullptr || config.copies.workers == 0) return std::nullopt;
  return std::optional<msg::CopyJobs>(std::in_place, config.copies, *workers, stack.loans());
}

}  // namespace

Engine::Engine(const EngineConfig& config, Workers* workers)
    : config_(config),
      stack_(config.stack, config.secret),
      copies_(make_copies(config, workers, stack_)),
      sessions_(config.session, config.cluster_key, pending_places(config), config.secret, *this,
                copies()),
      transmitter_(
          std::max<std::uint32_t>(config.stack.mtu_bytes, config.stack.max_super_segment_bytes)) {
  if (config.places != nullptr)
    sessions_.acceptor().share(*config.places, config.stack.shard.index);
  // The stack is new, so its port is free.
  [[maybe_unused]] const Status listening = stack_.listen(config.listen_port, *this);
  assert(listening);
}

Engine::~Engine() = default;

// --- A turn --------------------------------------------------------------------------------------

void Engine::check(TimePoint now, const TurnContext& context) {
  next_check_ = now + kCheckInterval;
  if (now >= next_watch_) {
    next_watch_ = now + kWatchInterval;
    watch_.check(now, counts(context.link),
                 [&](const Finding& finding) { context.events.on_warning(finding); });
    context.events.on_watch(now);
  }
  while (const auto change = stack_.take_path_change()) context.events.on_path_mtu(now, *change);
  if (const auto other = stack_.duplicate(); other && !told_duplicate_) {
    told_duplicate_ = true;
    context.events.on_duplicate_address(stack_.address(), *other);
  }
  while (const auto change = stack_.take_control_change())
    context.events.on_congestion_control(now, *change);
  while (const auto reroute = stack_.take_reroute()) context.events.on_reroute(now, *reroute);
  while (const auto change = stack_.take_router_change()) context.events.on_router(now, *change);
  while (const auto change = stack_.take_address_change()) context.events.on_address(now, *change);
  const LinkState state = context.link.state();
  if (state != link_state_) {
    link_state_ = state;
    if (state == LinkState::kUp) stack_.announce();
    context.events.on_link_state(state);
  }
  if (is_lost(state))
    context.clients.for_each([now](comms::Client& client) { client.on_link_lost(now); });
}

namespace {

// Returns received frames to the link, also when handling them throws.
struct Lent {
  link::Link& link;
  std::span<RxFrame> frames;
  ~Lent() { link.release(frames); }
};

}  // namespace

bool Engine::receive(TimePoint now, link::Link& link) {
  bool any = false;
  for (std::size_t round = 0; round < kBurstsPerTurn; ++round) {
    const std::optional<std::size_t> polled = std::exchange(polled_, std::nullopt);
    const std::size_t count = polled ? *polled : link.receive(rx_);
    if (count > 0) {
      any = true;
      const Lent lent{link, std::span(rx_).first(count)};
      on_frames(now, lent.frames);
    }
    // The thread may have lost its CPU after poll(): more may have come before this turn's time.
    const bool may_have_missed = polled && after_gap_;
    if (count < rx_.size() && !may_have_missed) break;
  }
  return any;
}

void Engine::release_held(link::Link& link) {
  while (const std::size_t count = stack_.take_released(rx_)) {
    // The stack no longer needs them; release() skips frames that are marked as kept.
    for (RxFrame& frame : std::span(rx_).first(count)) frame.kept = false;
    link.release(std::span(rx_).first(count));
    if (count < rx_.size()) break;
  }
}

void Engine::reap_retired(TimePoint now, const TurnContext& context) {
  context.clients.reap_retired();
  if (context.clients.is_empty()) context.events.on_nobody_left(now);
}

NicCounts Engine::counts(const link::Link& link) const {
  return {.tcp = stack_.counters(),
          .acceptor = sessions_.acceptor().counters(),
          .link = link.counters(),
          .ring_full = transmitter_.refusals(),
          .groups = {}};
}

void Engine::on_timers(TimePoint now) {
  if (copies_) copies_->collect(now);
  stack_.on_timers(now);
  sessions_.on_timers(now);
}

TimePoint Engine::next_deadline() const {
  return std::min(stack_.next_deadline(), sessions_.next_deadline());
}

// --- Connections ---------------------------------------------------------------------------------

Result<Stream*> Engine::dial(TimePoint now, Endpoint remote, StreamEvents& events,
                             const DialSettings& settings) {
  Stream* const stream = ZTCP_TRY(stack_.connect(now, remote, events, settings.peer_shares_nic));
  if (settings.dscp) stream->set_dscp(*settings.dscp);  // The SYN leaves in collect().
  return stream;
}

StreamEvents* Engine::on_accept(TimePoint now, Stream& stream, Endpoint remote) {
  // stack_.connections() includes the new connection.
  return sessions_.acceptor().on_accept(now, stream, remote, has_spare_for(stack_.connections()));
}

// Whether a table with `connections` entries has room for all sessions that may still be opened and
// for pending connections: only then may a session open further flows.
bool Engine::has_spare_for(std::size_t connections) const {
  return connections + sessions_.to_come() + pending_places(config_) <=
         config_.stack.max_connections;
}

}  // namespace ztcp::ustack
