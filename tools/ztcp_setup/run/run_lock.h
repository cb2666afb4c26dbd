// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One ztcp_setup at a time. Two locks on a file that only root can open: one of the run, which the
// kernel drops with its process however that ends, and which tells whose it is; and one that all
// programs inherit that the run starts, so that an update-grub that outlives its killed ztcp_setup
// ends before another begins.
#pragma once

#include <chrono>
#include <string>

#include <tl/expected.hpp>

#include "config/problem.h"
#include "tools/ztcp_setup/live/safe_path.h"

namespace ztcp::setup {

class RunLock {
 public:
  static constexpr const char* kPath = "/run/ztcp_setup.lock";

  // Waits for another run at most this long, then names it, or what it left at work.
  static tl::expected<RunLock, config::Problem> take(std::chrono::milliseconds patience,
                                                     const std::string& path = kPath);

 private:
  explicit RunLock(Descriptor file) : file_(std::move(file)) {}
  Descriptor file_;
};

}  // namespace ztcp::setup
