// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The difference between two snapshots of one process: growth of counters, rates. Pure.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <utility>

#include "tools/ztcp_stat/look/look.h"
#include "transport/stats/counters.h"
#include "transport/stats/snapshot.h"

namespace ztcp::stat {

// Growth of a counter that only grows; one that shrank belongs to a new entry.
constexpr std::uint64_t growth(std::uint64_t now, std::uint64_t then) {
  return now >= then ? now - then : now;
}

// A connection's bytes and messages since the earlier snapshot.
struct Progress {
  std::uint64_t bytes = 0;
  std::uint64_t messages = 0;
  double seconds = 0;
  double bytes_per_second() const { return seconds > 0 ? static_cast<double>(bytes) / seconds : 0; }
};

class Window {
 public:
  // `before` null: everything since the start of the process. Both snapshots outlive the window.
  Window(const stats::Snapshot* before, const stats::Snapshot& after, double seconds);

  const stats::Snapshot& now() const { return after_; }
  bool has_before() const { return before_ != nullptr; }
  // Time between the two snapshots.
  double seconds() const { return seconds_; }

  std::uint64_t count(const stats::Lane& lane, stats::Counter counter) const;
  std::uint64_t count(const stats::Device& device, stats::Counter counter) const;  // All its lanes.
  std::uint64_t count(stats::Counter counter) const;                               // All lanes.
  // Bytes per second of a lane's counter, over the time between the lane's own refreshes.
  double rate(const stats::Lane& lane, stats::Counter counter) const;
  double rate(const stats::Device& device, stats::Counter counter) const;
  double rate(stats::Counter counter) const;

  Progress progress(const stats::Connection& connection) const;
  // The earlier value of an entry; null: there was none.
  const stats::Connection* before(const stats::Connection& connection) const;
  const stats::Flow* before(const stats::Flow& flow) const;
  // Counts of a latency entry since the earlier snapshot.
  std::array<stats::Histogram::Counts, stats::kSizeClasses> counts(
      const stats::Latency& latency) const;
  std::uint64_t throttled_ns() const;
  std::uint64_t stolen_ns() const;

  const stats::Connection* connection_of(const stats::Flow& flow) const;

 private:
  const stats::Snapshot* before_;
  const stats::Snapshot& after_;
  double seconds_;
  std::map<std::pair<std::uint32_t, std::uint32_t>, const stats::Lane*> lanes_;
  std::map<std::uint64_t, const stats::Connection*> connections_;
  std::map<std::pair<std::uint64_t, std::uint32_t>, const stats::Flow*> flows_;
  std::map<std::uint64_t, const stats::Connection*> now_connections_;
};

// The window of a page of `after`, with the same process's page of `before` if it is there.
Window window_of(const Page& page, const Look* before, const Look& after);

}  // namespace ztcp::stat
