// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// An allocation that fails (ulimit -v) inside a turn ends the connection that needed it, and
// nothing else.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include <gtest/gtest.h>

#include "tests/support/failing_connect.h"
#include "tests/support/log_capture.h"
#include "tests/unit/sockets/engine_host.h"

namespace ztcp::sockets {
namespace {

using namespace test;

class MemoryShortage : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Queues, MemoryShortage, testing::Values(1, 2),
                         testing::PrintToStringParamName());

TEST_P(MemoryShortage, EndsAConnectThatNeedsItAndNothingElse) {
  const test::LogCapture log;
  const auto host = [](std::uint64_t secret) {
    return std::make_shared<EngineHost>(secret, /*max_streams=*/64, GetParam());
  };
  const FailingConnects counts =
      connect_while_memory_ends(std::array{host(1), host(2)}, Fails::kBothEnds);
  EXPECT_GE(counts.refused, 2U);
  EXPECT_GE(counts.dialled_again, 1U);
  const auto warnings = log.warnings();
  EXPECT_TRUE(std::none_of(warnings.begin(), warnings.end(), [](const std::string& line) {
    return line.find("driving it met") != std::string::npos;
  }));
}

}  // namespace
}  // namespace ztcp::sockets
