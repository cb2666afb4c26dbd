// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Logs messages of one lane that are slow or stalled (stats::MessageMonitor): which connection
// waits, for whom and for how long. At most one line of each kind in ten seconds, so that a rank
// that stops the whole job costs each lane one line. Also sums them up when a connection ends.
//
// Used with the poller's baton held.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "config/settings.h"
#include "core/address.h"
#include "core/clock.h"
#include "core/host_name.h"
#include "transport/comms/deferred_log.h"
#include "transport/stats/message_monitor.h"
#include "transport/stats/snapshot.h"

namespace ztcp::comms {

stats::MonitorSettings monitor_settings(const config::Monitor& config);

class StragglerLog {
 public:
  static constexpr Duration kOncePer = std::chrono::seconds(10);

  StragglerLog(std::string device, const stats::MonitorSettings& settings)
      : device_(std::move(device)), settings_(settings) {}

  struct Connection {
    stats::Way way = stats::Way::kSend;
    Endpoint remote;
    std::uint64_t communicator = 0;  // 0: unknown.
    HostName host{};                 // The peer's.
  };
  // Totals of one connection.
  struct Sums {
    std::uint64_t slow = 0;
    std::uint64_t stalled = 0;
    Duration longest{};  // The oldest age of such a message.
  };

  // "gpu-07 (10.0.0.7)", or the address alone.
  static std::string name_of_peer(const Connection& connection);

  const stats::MonitorSettings& settings() const { return settings_; }
  // A message became slow or stalled.
  void note(TimePoint now, stats::MessageMonitor::Verdict verdict, const Connection& connection,
            const stats::MessageMonitor::Facts& facts, stats::Waiting waiting, DeferredLog& log);
  // The connection ends.
  void note_end(TimePoint now, const Connection& connection, const Sums& sums, DeferredLog& log);

  // All messages of the lane so far.
  std::uint64_t slow() const { return slow_; }
  std::uint64_t stalled() const { return stalled_; }

 private:
  // One kind of line.
  struct Said {
    TimePoint next = TimePoint::min();
    std::uint64_t left_out = 0;  // Since the last line.
  };
  static bool may_say(Said& said, TimePoint now);

  const std::string device_;
  const stats::MonitorSettings settings_;
  std::uint64_t slow_ = 0;
  std::uint64_t stalled_ = 0;
  Said said_slow_;
  Said said_stalled_;
  Said said_end_;
};

}  // namespace ztcp::comms
