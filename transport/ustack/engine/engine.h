// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One NIC's protocol engine: a tcp::Stack and the sessions on it, joined. Still
// a value: told the time, no thread, no lock, no DPDK. A Lane's turns drive it in the product; the
// simulator drives two of them over a Wire.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "transport/core/address.h"
#include "transport/core/clock.h"
#include "transport/core/frame.h"
#include "transport/core/job_ring.h"
#include "transport/core/result.h"
#include "transport/msg/copy_jobs.h"
#include "transport/msg/sessions.h"
#include "transport/tcp/stack.h"

namespace ztcp::ustack {

// Places in a stack's table for so many sessions: one each for their first flows, and beside them
// places for further flows and for those who still knock, among them whom we refuse by name.
constexpr std::size_t table_places(std::size_t max_sessions) {
  const std::size_t further = std::min<std::size_t>(max_sessions, 1024);
  const std::size_t knocking = std::clamp<std::size_t>(max_sessions / 2, 8, 256);
  return max_sessions + further + knocking;
}

struct EngineConfig {
  tcp::StackConfig stack;  // max_connections: table_places() of session.max_sessions.
  msg::SessionSettings session;
  msg::ClusterKey cluster_key{};
  std::uint16_t listen_port = 7471;
  // Streams that have not yet shaken hands, at most a quarter of the table; strays live here until
  // they time out or others want their place.
  std::size_t max_pending_streams = 256;
  std::array<std::uint64_t, 2> secret{};  // Random in the product, fixed in tests.
  msg::CopySettings copies;
  // Of the engines that share a NIC (stack.shard); null: there is one.
  std::shared_ptr<msg::SessionPlaces> places;
  msg::PathEvents* path_events = nullptr;  // Null: nobody wants to know. Outlives the engine.
};

class Engine final : private tcp::StreamAcceptor, private msg::StreamSource {
 public:
  // `workers`, who outlive it, copy what is received for large messages; null: nobody does.
  explicit Engine(const EngineConfig& config, Workers* workers = nullptr);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // The loop's verbs; see tcp::Stack. on_timers() also drives sessions and flushes credit records,
  // so it is called after everything that was received or posted in a turn.
  void on_frames(TimePoint now, std::span<RxFrame> frames) {
    stack_.on_frames(now, frames);
    if (copies_) copies_->publish();
  }
  void on_timers(TimePoint now);
  std::size_t collect(TimePoint now, std::span<TxFrame> out) { return stack_.collect(now, out); }
  TimePoint next_deadline() const;
  std::size_t take_released(std::span<RxFrame> out) { return stack_.take_released(out); }

  tcp::Stack& stack() { return stack_; }
  const tcp::Stack& stack() const { return stack_; }
  // Sessions handed to a listener's events end before the engine does.
  msg::Sessions& sessions() { return sessions_; }
  const msg::Sessions& sessions() const { return sessions_; }
  // Null: there are no workers.
  msg::CopyJobs* copies() { return copies_ ? &*copies_ : nullptr; }

  // Connections with unacknowledged data or FIN, and sessions that have yet to tell their peer that
  // the process ends; zero: the process may go.
  std::size_t unfinished() const { return stack_.unfinished() + sessions_.finishing(); }

 private:
  StreamEvents* on_accept(TimePoint now, Stream& stream, Endpoint remote) override;
  Result<Stream*> dial(TimePoint now, Endpoint remote, StreamEvents& events) override {
    return stack_.connect(now, remote, events);
  }
  msg::PathEvents* path_events() override { return config_.path_events; }
  bool has_spare_stream() const override { return has_spare_for(stack_.connections() + 1); }
  Endpoint listening() const override {
    return {config_.stack.address.address, config_.listen_port};
  }
  bool has_spare_for(std::size_t connections) const;

  const EngineConfig config_;
  tcp::Stack stack_;
  std::optional<msg::CopyJobs> copies_;
  msg::Sessions sessions_;
};

}  // namespace ztcp::ustack
