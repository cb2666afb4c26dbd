// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tests/support/log_capture.h"

#include <mutex>

namespace ztcp::test {
namespace {

struct Lines {
  std::mutex mutex;
  std::vector<std::string> warnings;
  std::vector<std::string> infos;
};
Lines& lines() {
  static Lines instance;
  return instance;
}

void collect(log::Level level, const char*, int, const char* text) {
  const std::lock_guard lock(lines().mutex);
  (level == log::Level::kWarn ? lines().warnings : lines().infos).emplace_back(text);
}

}  // namespace

LogCapture::LogCapture() {
  // A background thread may still be in collect() on behalf of the previous capture.
  const std::lock_guard lock(lines().mutex);
  lines().warnings.clear();
  lines().infos.clear();
  log::bind(&collect);
}

LogCapture::~LogCapture() { log::bind(nullptr); }

std::vector<std::string> LogCapture::warnings() const {
  const std::lock_guard lock(lines().mutex);
  return lines().warnings;
}

std::vector<std::string> LogCapture::infos() const {
  const std::lock_guard lock(lines().mutex);
  return lines().infos;
}

std::string LogCapture::warned() const {
  std::string all;
  for (const std::string& line : warnings()) all += line + "\n";
  return all;
}

}  // namespace ztcp::test
