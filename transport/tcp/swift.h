// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A delay-based congestion control after Swift (Kumar et al., SIGCOMM 2020), for networks whose
// switches mark nothing: the window follows the round trip towards a target delay, so that queues
// stay short and few packets are lost. For networks that carry no other TCP: beside one that fills
// queues it yields nearly everything.
//
// The target is the path's shortest round trip plus a base, plus more for small windows: many flows
// share a queue, and a flow with a small window sees more of them (Swift's flow scaling). Above the
// target the window shrinks in proportion to the excess, at most once a round trip and by no more
// than half; below it grows by a segment a round trip, or as in slow start before the first excess.
#pragma once

#include <chrono>
#include <cstdint>

#include "core/clock.h"
#include "transport/tcp/congestion_control.h"

namespace ztcp::tcp {

class Swift final : public CongestionControl {
 public:
  static constexpr Duration kBase = std::chrono::microseconds(25);
  // The target's part that grows with the path: shorter ones can't be met on a long path, whose
  // round trip varies more.
  static constexpr std::int64_t kPathDivisor = 8;
  static constexpr Duration kMostFlowScaling = std::chrono::microseconds(50);
  static constexpr double kLeastScaledSegments = 1;
  static constexpr double kMostScaledSegments = 64;
  static constexpr double kBeta = 0.8;
  static constexpr double kMostDecrease = 0.5;

  explicit Swift(SeqNum) {}

  // Beyond the shortest round trip.
  static Duration target(Duration min_rtt, double segments);

  void on_ack(TimePoint now, const Ack& ack, Window& window) override;
  std::uint32_t on_loss(const Window& window) override;
  void on_timeout(SeqNum) override {}
  void save() override {}
  void undo() override {}
  const char* name() const override { return "swift"; }

 private:
  TimePoint decreased_{};
};

}  // namespace ztcp::tcp
