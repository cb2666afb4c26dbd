// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The protocol engine of one lane of a NIC: a tcp::Stack, the sessions on it, and the turn that
// joins them with a link and with clients. A turn is one pass over all there is to do: receive,
// take the clients' posts, run timers and sessions, give frames back, transmit, destroy the clients
// that have retired. Now and then it looks at the link's state and at its counters.
//
// Still a value: it is told the time and the clients that posted, and reports by events. It
// knows no thread, no lock, no clock, no words and no DPDK, so the simulator runs the turn of the
// product. Owned by a Lane, used with its poller's baton held.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "transport/comms/clients.h"
#include "transport/core/address.h"
#include "transport/core/clock.h"
#include "transport/core/frame.h"
#include "transport/core/job_ring.h"
#include "transport/core/result.h"
#include "transport/link/link.h"
#include "transport/msg/copy_jobs.h"
#include "transport/msg/sessions.h"
#include "transport/tcp/stack.h"
#include "transport/ustack/engine/nic_counts.h"
#include "transport/ustack/engine/nic_watch.h"
#include "transport/ustack/engine/transmitter.h"

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

// Told from inside turns, to the owner of the engine; all of it seldom.
class TurnEvents {
 public:
  // It changed. Clients hear of a lost link after this.
  virtual void on_link_state(link::LinkState state) = 0;
  virtual void on_warning(const Finding& finding) = 0;
  virtual void on_path_mtu(TimePoint now, const tcp::PathMtuChange& change) = 0;
  // The last client was destroyed.
  virtual void on_nobody_left(TimePoint now) = 0;
  // Every Engine::kWatchInterval.
  virtual void on_watch(TimePoint) {}

 protected:
  ~TurnEvents() = default;
};

// The parts that a turn joins the engine with: always the same.
struct TurnContext {
  link::Link& link;
  comms::Clients& clients;
  TurnEvents& events;
};

class Engine final : private tcp::StreamAcceptor, private msg::StreamSource {
 public:
  // How often the state of the link is looked at.
  static constexpr Duration kLookInterval = std::chrono::milliseconds(1);
  // How often its counters are compared with the limits that are worth a warning.
  static constexpr Duration kWatchInterval = std::chrono::seconds(1);

  // `workers`, who outlive it, copy what is received for large messages; null: nobody does.
  explicit Engine(const EngineConfig& config, Workers* workers = nullptr);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // `posts(visit)` calls visit(index) for each client that has some. True when anything moved.
  template <class Posts>
  bool turn(TimePoint now, const TurnContext& context, Posts&& posts) {
    begin(now, context);
    // Frames first, timers after: a frame that arrived during a gap must not be taken for lost.
    bool moved = receive(now, context.link);
    posts([&](std::size_t client) { moved |= context.clients.on_doorbell(client, now); });
    on_timers(now);
    release_held(context.link);
    moved |= transmitter_.run(stack_, context.link, now);
    if (context.clients.has_retired()) [[unlikely]]
      reap_retired(now, context);
    return moved;
  }
  // Frames that still wait here point at user memory no more, and the link notes the frames that it
  // took. Called before a comm reports that memory is free again without its bytes having been
  // acknowledged.
  void abandon_payload(link::Link& link) {
    transmitter_.detach_payload();
    link.note_abandoned_payload();
  }
  NicCounts counts(const link::Link& link) const;  // Groups are the comms' to count.

  // The verbs of a turn, for tests that drive an engine without a link: see tcp::Stack. on_timers()
  // also drives sessions and flushes credit records, so it is called after everything that was
  // received or posted in a turn.
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
  static constexpr std::size_t kBurst = 32;
  // Received in a turn: bounds the time until it sends again.
  static constexpr std::size_t kBurstsPerTurn = 4;

  void begin(TimePoint now, const TurnContext& context) {
    stack_.note_poll_gap(now, std::max(now - std::exchange(last_turn_, now), Duration::zero()));
    if (now >= next_look_) look(now, context);
  }
  void look(TimePoint now, const TurnContext& context);
  bool receive(TimePoint now, link::Link& link);
  void release_held(link::Link& link);
  void reap_retired(TimePoint now, const TurnContext& context);

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
  std::array<RxFrame, kBurst> rx_{};
  Transmitter transmitter_;
  NicWatch watch_;
  link::LinkState link_state_ = link::LinkState::kUp;  // When it was looked at.
  TimePoint last_turn_ = kNever;                       // When the last one began.
  TimePoint next_look_{};
  TimePoint next_watch_{};
};

}  // namespace ztcp::ustack
