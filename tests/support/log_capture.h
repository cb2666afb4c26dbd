// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Collects the library's log lines during its lifetime, so that a test can read them. One at a
// time.
#pragma once

#include <string>
#include <vector>

#include "core/log.h"

namespace ztcp::test {

class LogCapture {
 public:
  LogCapture();
  ~LogCapture();
  LogCapture(const LogCapture&) = delete;
  LogCapture& operator=(const LogCapture&) = delete;

  std::vector<std::string> warnings() const;
  std::vector<std::string> infos() const;
  // All warnings in one string, for searching.
  std::string warned() const;
};

}  // namespace ztcp::test
