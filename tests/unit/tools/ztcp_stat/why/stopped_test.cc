// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_stat/looks.h"

namespace ztcp::stat {
namespace {

TEST(Stopped, SignalOrDebugger) {
  Looks looks;
  looks.after.pages[0].state = 'T';
  looks.now().process.updated_monotonic_ns = kUpNs - 2 * kSecondNs;
  Finding finding = first(looks.findings(), Rule::kStopped);
  EXPECT_EQ(finding.severity, Severity::kSevere);
  EXPECT_EQ(finding.subject, "process 4242 (rank 3 of 16, python3)");
  EXPECT_EQ(finding.command, "kill -CONT 4242");
  EXPECT_NE(finding.text.find("for 3 s"), std::string::npos) << finding.text;
  looks.after.pages[0].state = 't';
  EXPECT_NE(first(looks.findings(), Rule::kStopped).text.find("debugger"), std::string::npos);
}

TEST(Stopped, ThreadsThatDoNotRunAlthoughMessagesWait) {
  Looks looks;
  looks.now().process.updated_monotonic_ns = kUpNs - 4 * kSecondNs;
  EXPECT_EQ(first(looks.findings(), Rule::kStopped).severity, Severity::kSevere);
}

TEST(Stopped, SleepWithoutMessagesIsHealthy) {
  Looks looks;
  looks.now().process.updated_monotonic_ns = kUpNs - 60 * kSecondNs;
  looks.now().lanes[0].queue_depth = 0;
  looks.now().connections[0].messages_in_flight = 0;
  EXPECT_TRUE(looks.findings().empty());
}

}  // namespace
}  // namespace ztcp::stat
