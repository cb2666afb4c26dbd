// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Logs how much went over a device as NCCL sees it, and over each rail of a merged one: when its
// last connection is closed, at most once a minute, and when the process ends. NICs of the other
// transports log the same (ustack/nic_log.h). Any thread.
#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "transport/verbs/session/rails.h"

namespace ztcp::verbs {

// Totals of one connection, in its direction.
struct Carried {
  std::uint64_t messages = 0;
  std::array<std::uint64_t, kMaxRails> bytes{};  // By rail of the device.
};

class CarriedLog {
 public:
  using Clock = std::chrono::steady_clock;
  static constexpr auto kInterval = std::chrono::minutes(1);

  // `rails`: their names, in order.
  CarriedLog(std::string name, std::vector<std::string> rails)
      : name_(std::move(name)), rails_(std::move(rails)) {}

  void opened();
  // The line to be told, if there is one.
  std::optional<std::string> closed(const Carried& carried, bool sent, Clock::time_point now);
  // The totals that were not logged yet, before the process ends.
  std::optional<std::string> rest();

 private:
  std::string text() const;

  const std::string name_;
  const std::vector<std::string> rails_;
  std::mutex mutex_;
  std::size_t open_ = 0;
  Carried sent_;
  Carried received_;
  bool is_untold_ = false;
  std::optional<Clock::time_point> told_at_;
};

}  // namespace ztcp::verbs
