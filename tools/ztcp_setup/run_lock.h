// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// One ztcp_setup at a time. A record lock on a file that only root can open: the kernel drops it
// with its process however that ends, and tells whose it is.
#pragma once

#include <chrono>
#include <string>

#include <tl/expected.hpp>

#include "config/problem.h"
#include "tools/ztcp_setup/safe_path.h"

namespace ztcp::setup {

class RunLock {
 public:
  static constexpr const char* kPath = "/run/ztcp_setup.lock";

  // Waits for another run at most this long, then names it.
  static tl::expected<RunLock, config::Problem> take(std::chrono::milliseconds patience,
                                                     const std::string& path = kPath);

 private:
  explicit RunLock(Descriptor file) : file_(std::move(file)) {}
  Descriptor file_;
};

}  // namespace ztcp::setup
