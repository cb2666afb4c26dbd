// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A backend that counts its turns and does nothing else.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdlib>
#include <string>
#include <thread>

#include "transport/comms/backend.h"

namespace ztcp::comms {

class CountingBackend : public Backend {
 public:
  explicit CountingBackend(int& starts) : starts_(starts) {}
  void start() override { ++starts_; }
  void poll() override {
    std::this_thread::sleep_for(polls_for);
    polled_at = std::chrono::steady_clock::now();
  }
  TurnOutcome turn(TimePoint now, Doorbell&) override {
    ++turns;
    last_now = now;
    std::this_thread::sleep_for(stops_for);
    return {.moved = moves, .leaves_unsent = leaves_some};
  }
  TimePoint next_deadline() const override { return kNever; }
  msg::Sessions& sessions() override { std::abort(); }
  void probe(IpAddress) override {}
  TimePoint heard_from(TimePoint, IpAddress) const override { return {}; }
  std::size_t unfinished() const override {
    asked_by = std::this_thread::get_id();
    return 0;
  }
  void abandon_payload() override {}
  std::string summary() const override { return "did nothing"; }
  std::uint32_t map_memory(const void*, std::size_t) override { return kUnmapped; }
  void unmap_memory(std::uint32_t) override {}
  std::string down_advice() const override { return {}; }
  std::string lost_reason() const override { return {}; }
  const char* lost_advice() const override { return ""; }
  Error lost_error() const override { return {}; }

  std::atomic<int> turns{0};
  std::atomic<bool> moves{false};
  std::atomic<bool> leaves_some{false};
  TimePoint last_now{};
  Duration stops_for{};
  Duration polls_for{};
  std::chrono::steady_clock::time_point polled_at{};
  mutable std::atomic<std::thread::id> asked_by{};  // The last thread that called unfinished().

 private:
  int& starts_;
};

}  // namespace ztcp::comms
