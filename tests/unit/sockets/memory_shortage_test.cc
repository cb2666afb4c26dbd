// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// An allocation that fails inside a turn (ulimit -v) ends only the connection that needed it.
#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <thread>

#include <gtest/gtest.h>

#include "tests/support/failing_connect.h"
#include "tests/support/log_capture.h"
#include "tests/unit/sockets/lane_host.h"
#include "transport/comms/stranger_log.h"

namespace ztcp::sockets {
namespace {

using namespace test;

class ConnectInShortage : public testing::TestWithParam<std::size_t> {};
INSTANTIATE_TEST_SUITE_P(Queues, ConnectInShortage, testing::Values(1, 2),
                         testing::PrintToStringParamName());

TEST_P(ConnectInShortage, FailsAloneWithoutMemory) {
  const test::LogCapture log;
  const auto host = [](std::uint64_t secret) {
    return std::make_shared<LaneHost>(secret, /*max_streams=*/64, GetParam());
  };
  const FailingConnects counts =
      connect_while_memory_ends(std::array{host(1), host(2)}, Fails::kBothEnds);
  EXPECT_GE(counts.refused, 2U);
  EXPECT_GE(counts.dialled_again, 1U);
  const auto warnings = log.warnings();
  EXPECT_TRUE(std::none_of(warnings.begin(), warnings.end(), [](const std::string& line) {
    return line.find("an exception ended a turn") != std::string::npos;
  }));
}

TEST(MemoryShortage, OmitsLogLinesAndNothingElse) {
  const test::LogCapture log;
  const auto host = std::make_shared<LaneHost>(/*secret=*/1);
  const auto listener = comms::CommListener::open(host);
  ASSERT_TRUE(listener);
  for (std::size_t nth = 1;; ++nth) {
    std::this_thread::sleep_for(comms::StrangerLog::kCheckInterval);  // The next check is due.
    test::FailingAllocation failing(nth);
    EXPECT_TRUE(failing.during([&] { return (*listener)->accept(); }));
    if (!failing.has_failed()) break;
    ASSERT_LT(nth, 30U);
  }
  for (const std::string& line : log.warnings())
    EXPECT_EQ(line.find("an exception ended a turn"), std::string::npos) << line;
}

}  // namespace
}  // namespace ztcp::sockets
