// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The protocol engine of one lane of a NIC: a tcp::Stack, the sessions on it, and the turn that
// connects them with a link and with clients. A turn is one pass over all work: receive, take the
// clients' posts, run timers and sessions, release frames, transmit, destroy retired clients. At
// intervals it also checks the link's state and the counters.
//
// A value: time and rung doorbells are arguments, results are events. It has no thread, lock,
// clock, log text or DPDK, so the simulator runs the same turn as the product. Owned by a Lane,
// used with its poller's baton held.
#pragma once

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "core/address.h"
#include "core/clock.h"
#include "core/frame.h"
#include "core/job_ring.h"
#include "core/result.h"
#include "transport/comms/clients/clients.h"
#include "transport/link/link.h"
#include "transport/msg/copy_jobs.h"
#include "transport/msg/sessions.h"
#include "transport/tcp/stack.h"
#include "transport/ustack/engine/nic_counts.h"
#include "transport/ustack/engine/nic_watch.h"
#include "transport/ustack/engine/transmitter.h"

namespace ztcp::ustack {

// Size of a stack's connection table for `max_sessions` sessions: their first flows, further flows,
// and pending connections, including those that are being refused with a reason.
constexpr std::size_t table_places(std::size_t max_sessions) {
  const std::size_t further = std::min<std::size_t>(max_sessions, 1024);
  const std::size_t pending = std::clamp<std::size_t>(max_sessions / 2, 8, 256);
  return max_sessions + further + pending;
}

struct EngineConfig {
  tcp::StackConfig stack;  // max_connections: table_places() of session.max_sessions.
  msg::SessionSettings session;
  msg::ClusterKey cluster_key{};
  std::uint16_t listen_port = 7471;
  // Most streams with an incomplete handshake, and at most a quarter of the table. Strays count
  // here until they time out or make room for newer streams.
  std::size_t max_pending_streams = 256;
  std::array<std::uint64_t, 2> secret{};  // Random in the product, fixed in tests.
  msg::CopySettings copies;
  // Shared by the engines of one NIC (stack.shard); null: the NIC has one engine.
  std::shared_ptr<msg::SessionPlaces> places;
  msg::PathEvents* path_events = nullptr;  // May be null. Outlives the engine.
};

// Events for the engine's owner, called inside turns. All are rare.
class TurnEvents {
 public:
  // The link's state changed. Clients are told of a lost link after this call.
  virtual void on_link_state(LinkState state) = 0;
  virtual void on_warning(const Finding& finding) = 0;
  virtual void on_path_mtu(TimePoint now, const tcp::PathMtuChange& change) = 0;
  // Another host has the stack's IPv6 address; at most once.
  virtual void on_duplicate_address(IpAddress own, const MacAddress& other) = 0;
  virtual void on_congestion_control(TimePoint, const tcp::CongestionControlChange&) {}
  virtual void on_reroute(TimePoint, const tcp::Reroute&) {}
  virtual void on_router(TimePoint, const tcp::RouterChange&) {}
  virtual void on_address(TimePoint, const tcp::AddressChange&) {}
  // The last client was destroyed.
  virtual void on_nobody_left(TimePoint now) = 0;
  // Every Engine::kWatchInterval.
  virtual void on_watch(TimePoint) {}

 protected:
  ~TurnEvents() = default;
};

// The objects that a turn works on, the same in each turn of an engine.
struct TurnContext {
  link::Link& link;
  comms::Clients& clients;
  TurnEvents& events;
};

class Engine final : private tcp::StreamAcceptor, private msg::StreamSource {
 public:
  // Time between two checks of the link's state.
  static constexpr Duration kCheckInterval = std::chrono::milliseconds(1);
  // Time between two comparisons of the counters with the warning thresholds.
  static constexpr Duration kWatchInterval = std::chrono::seconds(1);

  // `workers` copy the payload of large messages and outlive the engine; null: the engine copies
  // it.
  explicit Engine(const EngineConfig& config, Workers* workers = nullptr);
  ~Engine();
  Engine(const Engine&) = delete;
  Engine& operator=(const Engine&) = delete;

  // Takes the first frames of the next turn, whose time is read afterwards: see comms::Backend.
  // Frames that a turn has left behind, because it threw, stay first.
  void poll(link::Link& link) {
    if (!polled_) polled_ = link.receive(rx_);
  }
  // `posts(visit)` calls visit(index) for each client with posts. True when anything moved. Without
  // a poll() before, the turn receives all frames itself.
  template <class Posts>
  bool turn(TimePoint now, const TurnContext& context, Posts&& posts) {
    begin(now, context);
    // Frames before timers: a frame that arrived during a gap must not count as lost.
    bool moved = receive(now, context.link);
    posts([&](std::size_t client) { moved |= context.clients.on_doorbell(client, now); });
    on_timers(now);
    release_held(context.link);
    moved |= transmitter_.run(stack_, context.link, now);
    if (context.clients.has_retired()) [[unlikely]]
      reap_retired(now, context);
    return moved;
  }
  // Copies the payload of frames that the link has not accepted, and tells the link that it holds
  // frames with abandoned payload. Called before user memory is reported free although its bytes
  // were not acknowledged.
  void abandon_payload(link::Link& link) {
    transmitter_.detach_payload();
    link.note_abandoned_payload();
  }
  NicCounts counts(const link::Link& link) const;  // Without `groups`, which Lane counts.

  // The steps of a turn, for tests and benches that drive an engine without a link: see tcp::Stack.
  // on_timers() also drives sessions and flushes credit records, so it follows all frames and posts
  // of a turn.
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

  // Connections with unacknowledged data or FIN, plus sessions that have not yet told their peer
  // that the process ends; zero: the process may end.
  std::size_t unfinished() const { return stack_.unfinished() + sessions_.finishing(); }

 private:
  static constexpr std::size_t kBurst = 32;
  // Limits the bursts received in a turn, so that the engine soon sends again.
  static constexpr std::size_t kBurstsPerTurn = 4;
  // Turns without a pause are shorter.
  static constexpr Duration kShortGap = std::chrono::microseconds(50);

  void begin(TimePoint now, const TurnContext& context) {
    const Duration gap = std::max(now - std::exchange(last_turn_, now), Duration::zero());
    stack_.note_poll_gap(now, gap);
    after_gap_ = gap > kShortGap;
    if (now >= next_check_) check(now, context);
  }
  void check(TimePoint now, const TurnContext& context);
  bool receive(TimePoint now, link::Link& link);
  void release_held(link::Link& link);
  void reap_retired(TimePoint now, const TurnContext& context);

  StreamEvents* on_accept(TimePoint now, Stream& stream, Endpoint remote) override;
  Result<Stream*> dial(TimePoint now, Endpoint remote, StreamEvents& events,
                       const DialSettings& settings) override;
  msg::PathEvents* path_events() override { return config_.path_events; }
  bool has_spare_stream() const override { return has_spare_for(stack_.connections() + 1); }
  Endpoint listening() const override { return {stack_.address(), config_.listen_port}; }
  bool shares_nic() const override { return config_.stack.shares_nic; }
  bool has_spare_for(std::size_t connections) const;

  const EngineConfig config_;
  tcp::Stack stack_;
  std::optional<msg::CopyJobs> copies_;
  msg::Sessions sessions_;
  std::array<RxFrame, kBurst> rx_{};
  std::optional<std::size_t> polled_;  // Frames in rx_ that poll() has taken.
  bool after_gap_ = false;             // This turn.
  Transmitter transmitter_;
  NicWatch watch_;
  LinkState link_state_ = LinkState::kUp;  // At the last check.
  bool told_duplicate_ = false;
  TimePoint last_turn_ = kNever;  // Start of the last turn.
  TimePoint next_check_{};
  TimePoint next_watch_{};
};

}  // namespace ztcp::ustack
