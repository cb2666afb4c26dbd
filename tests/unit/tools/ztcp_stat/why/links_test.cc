// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_stat/looks.h"

namespace ztcp::stat {
namespace {

using stats::Counter;

TEST(Links, DownAndLost) {
  Looks looks;
  looks.now().devices[0].link = stats::LinkStatus::kDown;
  Finding finding = first(looks.findings(), Rule::kLinkDown);
  EXPECT_EQ(finding.severity, Severity::kSevere);
  EXPECT_EQ(finding.command, "ip link show eth0");
  looks.now().devices[0].link = stats::LinkStatus::kLost;
  EXPECT_EQ(first(looks.findings(), Rule::kLinkLost).severity, Severity::kSevere);
}

TEST(Links, UnknownStatusIsHealthy) {
  Looks looks;
  looks.now().devices[0].link = stats::LinkStatus::kUnknown;
  EXPECT_TRUE(looks.findings().empty());
}

TEST(Links, DroppedFramesByReason) {
  Looks looks;
  looks.counter(Counter::kRxFrames) = 100'000;
  looks.counter(Counter::kTxDropped) = 50;
  looks.counter(Counter::kRxNoMemory) = 5000;
  const Findings findings = looks.findings();
  ASSERT_EQ(count(findings, Rule::kDrops), 2u);
  EXPECT_EQ(findings[0].severity, Severity::kSevere);
  EXPECT_NE(findings[0].text.find("pool of frames was empty"), std::string::npos);
  EXPECT_EQ(findings[1].severity, Severity::kWarning);
  EXPECT_NE(findings[1].text.find("50 frames dropped because the link was down"),
            std::string::npos);
}

TEST(Links, DropsThatOnlyTheNicCounts) {
  Looks looks;
  looks.counter(Counter::kRxFrames) = 9000;
  looks.counter(Counter::kNicRxMissed) = 1000;
  looks.counter(Counter::kNicTxErrors) = 1;
  looks.counter(Counter::kNicRxErrors) = 10;
  const Findings findings = looks.findings();
  ASSERT_EQ(count(findings, Rule::kDrops), 2u);
  EXPECT_NE(first(findings, Rule::kDrops)
                .text.find("1000 frames dropped by its NIC because the receive ring was full"),
            std::string::npos);
  EXPECT_EQ(first(findings, Rule::kDrops).severity, Severity::kSevere);
  EXPECT_EQ(count(findings, Rule::kDamaged), 1u);
}

TEST(Links, DropsOfThePastAreNoFault) {
  Looks looks;
  looks.then().lanes[0].counters[Counter::kRxNoMemory] = 50;
  looks.counter(Counter::kRxNoMemory) = 50;
  EXPECT_TRUE(looks.findings().empty());
}

TEST(Links, DamagedFramesFromTen) {
  Looks looks;
  looks.counter(Counter::kBadChecksums) = 9;
  EXPECT_TRUE(looks.findings().empty());
  looks.counter(Counter::kMalformedFrames) = 1;
  EXPECT_EQ(count(looks.findings(), Rule::kDamaged), 1u);
}

}  // namespace
}  // namespace ztcp::stat
