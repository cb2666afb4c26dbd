// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A statistics page of this process, on which transports that start later list what they do.
#pragma once

#include <chrono>
#include <string>
#include <thread>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/stats/page_fixture.h"
#include "transport/stats/page_reader.h"
#include "transport/stats/process_page.h"

namespace ztcp::verbs {

class ProcessPage {
 public:
  explicit ProcessPage(const std::vector<std::string>& devices) : page_(folder_.create()) {
    for (const std::string& name : devices) {
      stats::DeviceRecord record{};
      record.carrier = static_cast<std::uint32_t>(stats::Carrier::kRdma);
      record.name.set(name);
      page_->add_device(record);
    }
    stats::set_process_page(page_);
  }
  ~ProcessPage() { stats::set_process_page(nullptr); }
  ProcessPage(const ProcessPage&) = delete;
  ProcessPage& operator=(const ProcessPage&) = delete;

  stats::Snapshot read() const {
    auto snapshot = stats::read_page(folder_.path() / page_->file_name());
    EXPECT_TRUE(snapshot) << snapshot.error().where;
    return snapshot ? *snapshot : stats::Snapshot{};
  }
  // The first snapshot that the test wants, while `work` goes on; at the latest that of 20 s later.
  template <class Wanted, class Work>
  stats::Snapshot read_until(Wanted&& wanted, Work&& work) const {
    const auto ends = std::chrono::steady_clock::now() + std::chrono::seconds(20);
    auto look = std::chrono::steady_clock::now();
    while (true) {
      work();
      if (std::chrono::steady_clock::now() < look) continue;
      look += std::chrono::milliseconds(20);
      const stats::Snapshot snapshot = read();
      if (wanted(snapshot)) return snapshot;
      if (std::chrono::steady_clock::now() >= ends) {
        ADD_FAILURE() << "the page never showed it";
        return snapshot;
      }
    }
  }
  template <class Wanted>
  stats::Snapshot read_until(Wanted&& wanted) const {
    return read_until(wanted, [] { std::this_thread::sleep_for(std::chrono::milliseconds(5)); });
  }

 private:
  const stats::PageFolder folder_;
  const std::shared_ptr<stats::Page> page_;
};

// A device's only lane; an empty one: it is not listed.
inline stats::Lane lane_of(const stats::Snapshot& snapshot, std::uint32_t device) {
  for (const stats::Lane& lane : snapshot.lanes)
    if (lane.device == device) return lane;
  return {};
}
inline std::uint64_t count(const stats::Snapshot& snapshot, std::uint32_t device,
                           stats::Counter counter) {
  return lane_of(snapshot, device).counters[counter];
}
// Null: there is none.
inline const stats::Connection* connection_of(const stats::Snapshot& snapshot, stats::Way way) {
  for (const stats::Connection& connection : snapshot.connections)
    if (connection.way == way) return &connection;
  return nullptr;
}
inline bool waits(const stats::Snapshot& snapshot, stats::Way way, stats::Waiting waiting) {
  const stats::Connection* const connection = connection_of(snapshot, way);
  return connection != nullptr && connection->waiting == waiting;
}

}  // namespace ztcp::verbs
