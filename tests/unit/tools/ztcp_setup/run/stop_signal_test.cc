// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/run/stop_signal.h"

#include <csignal>
#include <cstdlib>

#include <gtest/gtest.h>

namespace ztcp::setup {
namespace {

// In a separate process: signal handlers apply to the whole process.
int after(int number) {
  stop_on_signals();
  if (stop_requested()) return 2;
  std::raise(number);
  return stop_requested() ? 0 : 1;
}

TEST(StopSignal, ASignalRequestsAStopWithoutEndingTheProcess) {
  for (const int number : {SIGINT, SIGTERM, SIGHUP})
    EXPECT_EXIT(std::_Exit(after(number)), testing::ExitedWithCode(0), "") << number;
}

}  // namespace
}  // namespace ztcp::setup
