// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A device's lane on the statistics page: RDMA has no thread for a device, so that one lane stands
// for all its connections, whichever threads use them. Used under the control thread's lock.
#pragma once

#include <cstdint>
#include <memory>

#include "core/clock.h"
#include "core/direction.h"
#include "transport/comms/lane_page.h"
#include "transport/stats/counters.h"
#include "transport/stats/page_writer.h"
#include "transport/verbs/rail.h"

namespace ztcp::verbs {

class Connection;

class DevicePage {
 public:
  static constexpr Duration kInterval = comms::LanePage::kInterval;

  // `counted`: rails whose strangers no other device counts.
  DevicePage(comms::LanePlace place, std::shared_ptr<const RailSet> set, Rails counted);

  const RailSet& rails() const { return *set_; }
  const Rails& counted() const { return counted_; }
  const comms::LanePlace& place() const { return place_; }

  // A refresh is begin(), add() for each living connection, and publish().
  void begin();
  void add(const Connection& connection);
  void publish(TimePoint now);

  void note_opened(Direction direction) { ++(direction == Direction::kSend ? opened_ : accepted_); }
  // The connection has ended; its counts stay.
  void retire(const Connection& connection) { add_to(ended_, connection); }

 private:
  static void add_to(stats::CounterValues& sums, const Connection& connection);
  stats::LinkStatus link() const;

  const comms::LanePlace place_;
  const std::shared_ptr<const RailSet> set_;
  const Rails counted_;
  stats::LaneRow row_;
  stats::LaneRecord record_{};
  stats::CounterValues ended_;  // Connections that have ended.
  stats::CounterValues sums_;   // Those and the living ones, in this round.
  std::uint64_t opened_ = 0;
  std::uint64_t accepted_ = 0;
  stats::LinkStatus told_link_ = stats::LinkStatus::kUnknown;
};

}  // namespace ztcp::verbs
