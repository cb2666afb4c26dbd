// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Allows one ztcp_setup at a time. Two locks on a file that only root can open: the run's lock,
// which the kernel releases however the process ends, and which names its owner; and one that all
// programs started by the run inherit, so that an update-grub that outlives its killed ztcp_setup
// ends before another run begins.
#pragma once

#include <chrono>
#include <string>

#include "config/problem.h"
#include "core/result.h"
#include "tools/ztcp_setup/live/safe_path.h"

namespace ztcp::setup {

class RunLock {
 public:
  static constexpr const char* kPath = "/run/ztcp_setup.lock";

  // Waits for another run at most this long, then reports it, or the program it left running.
  static Result<RunLock, config::Problem> take(std::chrono::milliseconds timeout,
                                               const std::string& path = kPath);

 private:
  explicit RunLock(Descriptor file) : file_(std::move(file)) {}
  Descriptor file_;
};

}  // namespace ztcp::setup
