// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The control thread refreshes the statistics page twice a second, while there is a connection. It
// is the one writer of the entries of RDMA, because several threads of NCCL's may use connections
// of one device. All of it under the lock.
#include <algorithm>
#include <utility>

#include "core/log.h"
#include "transport/stats/process_page.h"
#include "transport/verbs/control_thread.h"

namespace ztcp::verbs {

void ControlThread::list_on_page(const RailSet& rails) {
  auto page = stats::process_page();
  const auto set = rails.weak_from_this().lock();
  if (page == nullptr || set == nullptr || page_of(rails) != nullptr) return;
  comms::LanePlace place = comms::lane_place(std::move(page), rails.name, 0, settings_.monitor);
  if (place.page == nullptr) return;
  // A NIC may serve alone and in a merged device.
  Rails counted;
  for (const auto& rail : rails.rails)
    if (std::ranges::none_of(pages_, [&](const DevicePage& other) {
          return std::ranges::find(other.counted(), rail) != other.counted().end();
        }))
      counted.push_back(rail);
  pages_.emplace_back(std::move(place), set, std::move(counted));
  refresh_soon();
  wake();
}

DevicePage* ControlThread::page_of(const RailSet& rails) {
  const auto found =
      std::ranges::find_if(pages_, [&](const DevicePage& one) { return &one.rails() == &rails; });
  return found == pages_.end() ? nullptr : &*found;
}

void ControlThread::open_report(ControlConnection& control, std::uint64_t communicator) {
  const DevicePage* const device = page_of(control.connection->rails());
  if (device == nullptr) return;
  control.connection->set_report(
      ConnectionReport::open(device->place(), *control.connection, communicator));
  refresh_soon();
}

void ControlThread::refresh_pages(TimePoint now) {
  for (DevicePage& device : pages_) device.begin();
  for (const auto& control : controls_) {
    if (!control->connection) continue;
    Connection& connection = *control->connection;
    DevicePage* const device = page_of(connection.rails());
    if (device == nullptr) continue;
    if (ConnectionReport* const report = connection.report())
      report->refresh(now, connection, control->state == ControlConnection::State::kLeaving,
                      deferred_log_);
    device->add(connection);
  }
  for (DevicePage& device : pages_) device.publish(now);
  pages_due_ = controls_.empty() ? kNever : now + DevicePage::kInterval;
}

void ControlThread::retire_report(ControlConnection& control, TimePoint now) {
  DevicePage* const device = page_of(control.connection->rails());
  if (device == nullptr) return;
  if (ConnectionReport* const report = control.connection->report()) {
    report->refresh(now, *control.connection, true, deferred_log_);
    report->end(now, deferred_log_);
  }
  device->retire(*control.connection);
}

// A logger may block, and threads of NCCL's want the lock.
void ControlThread::write_log(std::unique_lock<std::mutex>& lock) {
  if (deferred_log_.empty()) return;
  const auto lines = deferred_log_.take();
  lock.unlock();
  for (const auto& line : lines) log::write(line.level, __FILE__, __LINE__, line.text);
}

}  // namespace ztcp::verbs
