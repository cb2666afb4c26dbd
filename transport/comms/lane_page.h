// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A lane's part of the statistics page: refreshed by the holder of the baton at the end of a turn,
// twice a second, and at most kClientsPerTurn connections in one turn, so that thousands of them
// never hold a turn up.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "core/clock.h"
#include "transport/comms/backend.h"
#include "transport/comms/late_turns.h"
#include "transport/comms/straggler_log.h"
#include "transport/stats/page_writer.h"

namespace ztcp::comms {

// Waits of all connections of a lane, also of those that have ended.
struct LaneWaits {
  std::uint64_t zero_windows = 0;
  std::uint64_t zero_window_ns = 0;
  std::uint64_t credit_stalls = 0;
  std::uint64_t credit_stall_ns = 0;
};

// The place of a lane in the page. `page` null: the page is off.
struct LanePlace {
  std::shared_ptr<stats::Page> page = nullptr;
  std::uint32_t device = 0;  // In the page.
  std::uint32_t lane = 0;    // Among the device's lanes.
  // The lane's; null where `page` is.
  std::shared_ptr<StragglerLog> stragglers = nullptr;
  std::shared_ptr<LaneWaits> waits = nullptr;
};
// Null without a page, or where the page does not list the device.
LanePlace lane_place(std::shared_ptr<stats::Page> page, const std::string& device, std::size_t lane,
                     const stats::MonitorSettings& monitor = {});

class LanePage {
 public:
  static constexpr Duration kInterval = std::chrono::milliseconds(500);
  static constexpr std::size_t kClientsPerTurn = 32;

  explicit LanePage(LanePlace place);

  bool is_due(TimePoint now) const { return now >= due_; }
  const LanePlace& place() const { return place_; }
  // `depth`: posted messages that are not done.
  void refresh(TimePoint now, Backend& backend, const LateTurns& late_turns, std::ptrdiff_t depth);

 private:
  void publish(TimePoint now, Backend& backend, const LateTurns& late_turns, std::ptrdiff_t depth);

  const LanePlace place_;
  stats::LaneRow row_;
  stats::LaneRecord record_{};
  TimePoint due_ = kNever;
  TimePoint next_round_{};
  std::size_t next_client_ = 0;
  LinkState link_ = LinkState::kDown;  // At the last refresh.
  bool has_told_link_ = false;
};

}  // namespace ztcp::comms
