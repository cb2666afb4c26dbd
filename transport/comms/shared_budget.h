// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Counts the sessions of all lanes of a NIC. A lane checks and adds without a lock, so the sum
// may exceed `most` by one session for each lane but the first.
//
// Any thread.
#pragma once

#include <atomic>
#include <cstddef>

#include "transport/msg/session_budget.h"

namespace ztcp::comms {

class SharedBudget final : public msg::SessionBudget {
 public:
  explicit SharedBudget(std::size_t most) : most_(most) {}

  std::size_t most() const override { return most_; }
  std::size_t left() const override {
    const std::size_t taken = taken_.load(std::memory_order_relaxed);
    return taken < most_ ? most_ - taken : 0;
  }
  void add() override { taken_.fetch_add(1, std::memory_order_relaxed); }
  void remove(std::size_t count) override { taken_.fetch_sub(count, std::memory_order_relaxed); }

 private:
  const std::size_t most_;
  std::atomic<std::size_t> taken_{0};
};

}  // namespace ztcp::comms
