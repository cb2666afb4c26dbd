// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/engine/engine.h"

#include <algorithm>
#include <cassert>

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
                copies()) {
  if (config.places != nullptr)
    sessions_.acceptor().share(*config.places, config.stack.shard.index);
  // The stack is new, so its port is free.
  [[maybe_unused]] const Status listening = stack_.listen(config.listen_port, *this);
  assert(listening);
}

Engine::~Engine() = default;

void Engine::on_timers(TimePoint now) {
  if (copies_) copies_->collect(now);
  stack_.on_timers(now);
  sessions_.on_timers(now);
}

TimePoint Engine::next_deadline() const {
  return std::min(stack_.next_deadline(), sessions_.next_deadline());
}

StreamEvents* Engine::on_accept(TimePoint now, Stream& stream, Endpoint remote) {
  // The new one is among the connections.
  return sessions_.acceptor().on_accept(now, stream, remote, has_spare_for(stack_.connections()));
}

// Whether so many connections leave a place to each session that may still come, and to those who
// knock: then some may be flows that their sessions could do without.
bool Engine::has_spare_for(std::size_t connections) const {
  return connections + sessions_.to_come() + pending_places(config_) <=
         config_.stack.max_connections;
}

}  // namespace ztcp::ustack
