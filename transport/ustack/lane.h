// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One lane of a NIC as a comms::Backend: its link, its engine and their turns.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "core/worker_threads.h"
#include "transport/comms/backend.h"
#include "transport/comms/path_log.h"
#include "transport/link/link.h"
#include "transport/ustack/engine/engine.h"
#include "transport/ustack/nic_log.h"

namespace ztcp::ustack {

class Lane final : public comms::Backend, private TurnEvents {
 public:
  // `carrier_advice`: the mending step for a link without a carrier. `workers`: options of the
  // engine.copies.workers threads.
  Lane(TimePoint now, const std::string& name, std::unique_ptr<link::Link> link,
       const EngineConfig& engine, std::string carrier_advice = {},
       WorkerThreads::Options workers = {});
  ~Lane() override { worker_threads_.stop(); }

  void start() override;
  void limit_waits(TimePoint end) override { worker_threads_.set_wait_deadline(end); }

  void poll() override { engine_.poll(*link_); }
  comms::TurnOutcome turn(TimePoint now, comms::Doorbell& doorbell) override {
    return {.moved =
                engine_.turn(now, context_, [&doorbell](auto&& visit) { doorbell.drain(visit); })};
  }
  TimePoint next_deadline() const override { return engine_.next_deadline(); }

  msg::Sessions& sessions() override { return engine_.sessions(); }
  void probe(IpAddress remote) override { engine_.stack().probe(remote); }
  TimePoint heard_from(TimePoint, IpAddress remote) const override {
    return engine_.stack().heard_from(remote);
  }
  std::size_t unfinished() const override { return engine_.unfinished(); }
  void abandon_payload() override { engine_.abandon_payload(*link_); }

  std::string summary() const override;
  void read_counters(stats::CounterValues& to) const override;

  std::uint32_t map_memory(const void* address, std::size_t size_bytes) override {
    return link_->map_memory(address, size_bytes);
  }
  void unmap_memory(std::uint32_t key) override { link_->unmap_memory(key); }

  std::string down_advice() const override;
  // See NicLog.
  std::string lost_reason() const override { return nic_log_.lost_reason(state()); }
  const char* lost_advice() const override { return NicLog::lost_advice(state()); }
  Error lost_error() const override { return NicLog::lost_error(state()); }
  std::string advice_for(Errc code) const override;
  // The address was taken from a router, and its lifetime is over.
  bool address_has_ended() const { return address_has_ended_; }

  // With the baton held: see tcp::Stack.
  bool awaits_router() { return engine_.stack().awaits_router(); }
  std::optional<tcp::TakenAddress> taken_address() { return engine_.stack().taken_address(); }
  void take_address(const tcp::TakenAddress& taken) { engine_.stack().take_address(taken); }

  // The NIC has a carrier of its own, whose loss is logged while a job runs: a port or a tap. A
  // memif or a mesh goes down whenever its peer ends. To be called before the first turn.
  void log_carrier() { logs_carrier_ = true; }

 private:
  NicCounts counts() const;
  void check_carrier(TimePoint now);
  void on_link_state(LinkState state) override;
  void on_warning(const Finding& finding) override { nic_log_.warn(finding); }
  void on_path_mtu(TimePoint now, const tcp::PathMtuChange& change) override {
    nic_log_.path_mtu(now, change);
  }
  void on_duplicate_address(IpAddress own, const MacAddress& other) override {
    nic_log_.duplicate_address(own, other);
  }
  void on_congestion_control(TimePoint now, const tcp::CongestionControlChange& change) override {
    nic_log_.congestion_control(now, change);
  }
  void on_reroute(TimePoint now, const tcp::Reroute& reroute) override {
    nic_log_.reroute(now, reroute);
  }
  void on_router(TimePoint now, const tcp::RouterChange& change) override {
    nic_log_.router(now, change);
  }
  void on_address(TimePoint now, const tcp::AddressChange& change) override {
    address_has_ended_ = engine_.stack().has_lost_address();
    nic_log_.address(now, change);
  }
  void on_nobody_left(TimePoint now) override { nic_log_.nobody_left(now, counts()); }
  void on_watch(TimePoint now) override;

  const std::unique_ptr<link::Link> link_;  // Destroyed after the engine.
  const std::string link_description_;
  const std::string carrier_advice_;
  NicLog nic_log_;
  comms::PathLog path_log_;
  const std::size_t workers_;
  const WorkerThreads::Options worker_options_;
  WorkerThreads worker_threads_;
  Engine engine_;
  bool logs_carrier_ = false;
  bool has_logged_down_ = false;
  std::atomic<bool> address_has_ended_ = false;
  // Time and counters at the last check for losses (on_watch()).
  TimePoint checked_for_losses_;
  std::uint64_t sent_before_ = 0;
  std::uint64_t repeated_before_ = 0;
  const TurnContext context_{*link_, clients_, *this};
};

}  // namespace ztcp::ustack
