// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/stats/message_monitor.h"

#include <chrono>

#include <gtest/gtest.h>

namespace ztcp::stats {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;
using Verdict = MessageMonitor::Verdict;

constexpr MonitorSettings kSettings{};

TEST(MessageMonitorTest, AMessageWithinTheUsualTimeIsFine) {
  MessageMonitor monitor;
  EXPECT_FALSE(monitor.check({milliseconds(300), milliseconds(1), milliseconds(20)}, kSettings));
  EXPECT_EQ(monitor.verdict(), Verdict::kFine);
}

TEST(MessageMonitorTest, AMessageBeyondTheFactorIsSlowAndReportedOnce) {
  MessageMonitor monitor;
  EXPECT_TRUE(monitor.check({milliseconds(400), milliseconds(1), milliseconds(20)}, kSettings));
  EXPECT_EQ(monitor.verdict(), Verdict::kSlow);
  EXPECT_FALSE(monitor.check({milliseconds(900), milliseconds(1), milliseconds(20)}, kSettings));
  EXPECT_TRUE(monitor.check({milliseconds(1), milliseconds(1), milliseconds(20)}, kSettings));
  EXPECT_EQ(monitor.verdict(), Verdict::kFine);
}

TEST(MessageMonitorTest, NoMessageBelowTheFloorIsSlow) {
  MessageMonitor monitor;
  EXPECT_FALSE(monitor.check({milliseconds(199), milliseconds(1), milliseconds(1)}, kSettings));
}

TEST(MessageMonitorTest, WithoutAUsualTimeNoMessageIsSlow) {
  MessageMonitor monitor;
  EXPECT_FALSE(monitor.check({seconds(60), seconds(1), Duration::zero()}, kSettings));
}

TEST(MessageMonitorTest, AUsualTimeOfMinutesDoesNotOverflow) {
  MessageMonitor monitor;
  EXPECT_FALSE(monitor.check({seconds(100), seconds(1), seconds(268)}, kSettings));
  EXPECT_TRUE(monitor.check({seconds(268 * 20), seconds(1), seconds(268)}, kSettings));
}

TEST(MessageMonitorTest, AMessageWithoutProgressIsStalledWhateverIsUsual) {
  MessageMonitor monitor;
  EXPECT_TRUE(monitor.check({seconds(10), seconds(10), Duration::zero()}, kSettings));
  EXPECT_EQ(monitor.verdict(), Verdict::kStalled);
}

TEST(MessageMonitorTest, ASlowMessageThatStallsIsReportedAgain) {
  MessageMonitor monitor;
  EXPECT_TRUE(monitor.check({seconds(1), milliseconds(1), milliseconds(1)}, kSettings));
  EXPECT_TRUE(monitor.check({seconds(11), seconds(10), milliseconds(1)}, kSettings));
}

TEST(MessageMonitorTest, AStalledMessageThatMovesStaysStalledUntilItIsFine) {
  MessageMonitor monitor;
  EXPECT_TRUE(monitor.check({seconds(20), seconds(10), milliseconds(1)}, kSettings));
  EXPECT_FALSE(monitor.check({seconds(21), milliseconds(1), milliseconds(1)}, kSettings));
  EXPECT_TRUE(monitor.check({Duration::zero(), Duration::zero(), milliseconds(1)}, kSettings));
}

TEST(MessageMonitorTest, SwitchedOffItReportsNothing) {
  MessageMonitor monitor;
  MonitorSettings off;
  off.is_on = false;
  EXPECT_FALSE(monitor.check({seconds(60), seconds(60), milliseconds(1)}, off));
}

}  // namespace
}  // namespace ztcp::stats
