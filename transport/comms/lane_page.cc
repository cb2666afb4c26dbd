// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/lane_page.h"

#include <algorithm>
#include <sched.h>
#include <utility>

namespace ztcp::comms {
namespace {

stats::LinkStatus status_of(LinkState state) {
  if (ztcp::is_lost(state)) return stats::LinkStatus::kLost;
  return state == LinkState::kUp ? stats::LinkStatus::kUp : stats::LinkStatus::kDown;
}

}  // namespace

LanePlace lane_place(std::shared_ptr<stats::Page> page, const std::string& device, std::size_t lane,
                     const stats::MonitorSettings& monitor) {
  if (page == nullptr) return {};
  const auto number = page->device_named(device);
  if (!number) return {};
  return {std::move(page), *number, static_cast<std::uint32_t>(lane),
          std::make_shared<StragglerLog>(device, monitor), std::make_shared<LaneWaits>()};
}

LanePage::LanePage(LanePlace place) : place_(std::move(place)) {
  if (place_.page == nullptr) return;
  row_ = place_.page->take<stats::LaneRecord>();
  record_.device = place_.device;
  record_.number = place_.lane;
  due_ = TimePoint{};
}

void LanePage::refresh(TimePoint now, Backend& backend, const LateTurns& late_turns,
                       std::ptrdiff_t depth) {
  if (next_client_ == 0) {
    next_round_ = now + kInterval;
    publish(now, backend, late_turns, depth);
  }
  next_client_ = backend.clients().visit_some(next_client_, kClientsPerTurn,
                                              [now](Client& client) { client.refresh_page(now); });
  // The next turn goes on with the clients that are left.
  due_ = next_client_ == 0 ? next_round_ : now;
}

void LanePage::publish(TimePoint now, Backend& backend, const LateTurns& late_turns,
                       std::ptrdiff_t depth) {
  const std::int64_t now_ns = now.time_since_epoch().count();
  stats::CounterValues counters;
  backend.read_counters(counters);
  counters[stats::Counter::kSentMessages] = backend.sent_messages();
  counters[stats::Counter::kReceivedMessages] = backend.received_messages();
  counters[stats::Counter::kLateTurns] = late_turns.count();
  counters[stats::Counter::kLateTurnTime] = static_cast<std::uint64_t>(late_turns.total().count());
  const LaneWaits& waits = *place_.waits;
  counters[stats::Counter::kZeroWindows] = waits.zero_windows;
  counters[stats::Counter::kZeroWindowTime] = waits.zero_window_ns;
  counters[stats::Counter::kCreditStalls] = waits.credit_stalls;
  counters[stats::Counter::kCreditStallTime] = waits.credit_stall_ns;
  counters[stats::Counter::kSlowMessages] = place_.stragglers->slow();
  counters[stats::Counter::kStalledMessages] = place_.stragglers->stalled();
  std::copy(counters.all().begin(), counters.all().end(), record_.counters.begin());
  record_.cpu = sched_getcpu();
  record_.connections = static_cast<std::uint32_t>(backend.clients().count());
  record_.queue_depth = static_cast<std::uint32_t>(std::max<std::ptrdiff_t>(depth, 0));
  record_.queued_bytes = backend.queued_bytes();
  record_.updated_monotonic_ns = now_ns;
  if (row_) row_.publish(record_);
  const LinkState state = backend.state();
  if (state != std::exchange(link_, state) || !std::exchange(has_told_link_, true))
    place_.page->update_device(place_.device, [state](stats::DeviceRecord& record) {
      record.link = static_cast<std::uint32_t>(status_of(state));
    });
  place_.page->touch(now_ns);
}

}  // namespace ztcp::comms
