// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/device_page.h"

#include <algorithm>
#include <utility>

#include "transport/msg/stranger_counts.h"
#include "transport/verbs/connection.h"

namespace ztcp::verbs {

using stats::Counter;

DevicePage::DevicePage(comms::LanePlace place, std::shared_ptr<const RailSet> set, Rails counted)
    : place_(std::move(place)),
      set_(std::move(set)),
      counted_(std::move(counted)),
      row_(place_.page->take<stats::LaneRecord>()) {
  record_.device = place_.device;
  record_.number = place_.lane;
  record_.cpu = -1;
}

void DevicePage::begin() {
  sums_ = ended_;
  record_.connections = 0;
  record_.queue_depth = 0;
}

void DevicePage::add(const Connection& connection) {
  add_to(sums_, connection);
  ++record_.connections;
  record_.queue_depth += connection.traffic().in_flight();
}

void DevicePage::add_to(stats::CounterValues& sums, const Connection& connection) {
  connection.traffic().add_to(sums);
  if (connection.has_failed()) ++sums[Counter::kConnectionsFailed];
  if (const ConnectionReport* const report = connection.report()) {
    sums[Counter::kLostRails] += report->rail_failures();
    sums[Counter::kRedials] += report->rail_recoveries();
  }
}

// Like that of the TCP transports: a connection goes on while one of its rails does.
stats::LinkStatus DevicePage::link() const {
  const auto any = [this](const auto& is) {
    return std::any_of(set_->rails.begin(), set_->rails.end(), is);
  };
  if (any([](const auto& rail) { return rail->is_healthy(); })) return stats::LinkStatus::kUp;
  return any([](const auto& rail) { return rail->is_usable() && !rail->is_dead(); })
             ? stats::LinkStatus::kDown
             : stats::LinkStatus::kLost;
}

void DevicePage::publish(TimePoint now) {
  sums_[Counter::kConnectionsOpened] = opened_;
  sums_[Counter::kConnectionsAccepted] = accepted_;
  for (const auto& rail : counted_) stats::add_to(sums_, msg::kStrangerCounters, rail->strangers);
  sums_[Counter::kCreditStalls] = place_.waits->credit_stalls;
  sums_[Counter::kCreditStallTime] = place_.waits->credit_stall_ns;
  sums_[Counter::kSlowMessages] = place_.stragglers->slow();
  sums_[Counter::kStalledMessages] = place_.stragglers->stalled();
  std::copy(sums_.all().begin(), sums_.all().end(), record_.counters.begin());
  record_.updated_monotonic_ns = now.time_since_epoch().count();
  if (row_) row_.publish(record_);
  if (const stats::LinkStatus status = link(); status != std::exchange(told_link_, status))
    place_.page->update_device(place_.device, [status](stats::DeviceRecord& record) {
      record.link = static_cast<std::uint32_t>(status);
    });
  place_.page->touch(record_.updated_monotonic_ns);
}

}  // namespace ztcp::verbs
