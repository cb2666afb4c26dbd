// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Workers that do their jobs only when a thread waits, and a limited number of frames to lend them.
#pragma once

#include <cstddef>
#include <cstdint>

#include "transport/msg/copy_jobs.h"

namespace ztcp::msg {

struct LazyWorkers final : Workers {
  std::size_t count() const override { return 1; }
  void wake(std::size_t) override {}
  bool wait_for(std::size_t worker) override {
    ++waits;
    while (jobs->work(worker)) {
    }
    return true;
  }

  CopyJobs* jobs = nullptr;
  std::size_t waits = 0;
};

struct Loans final : FrameLoans {
  std::uint32_t lend() override { return left == 0 ? kNone : static_cast<std::uint32_t>(--left); }
  void give_back(std::uint32_t) override {}

  std::size_t left = 0;
};

}  // namespace ztcp::msg
