// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_stat/looks.h"

namespace ztcp::stat {
namespace {

using stats::Counter;

TEST(Strangers, WrongCookieNowIsAFault) {
  Looks looks;
  looks.counter(Counter::kWrongCookies) = 3;
  const Finding finding = first(looks.findings(), Rule::kStrangers);
  EXPECT_EQ(finding.severity, Severity::kWarning);
  EXPECT_NE(finding.text.find("3 connections with a wrong cookie"), std::string::npos);
}

TEST(Strangers, LongAgoIsANote) {
  Looks looks;
  looks.then().lanes[0].counters[Counter::kWrongKeys] = 3;
  looks.counter(Counter::kWrongKeys) = 3;
  EXPECT_EQ(first(looks.findings(), Rule::kStrangers).severity, Severity::kNote);
  EXPECT_FALSE(names_a_fault(looks.findings()));
}

TEST(Strangers, StaysAFaultWhileTheJobStarts) {
  Looks looks;
  looks.then().lanes[0].counters[Counter::kWrongKeys] = 3;
  looks.counter(Counter::kWrongKeys) = 3;
  looks.then().process.started_realtime_ns = kStartNs + kUpNs - 30 * kSecondNs;
  looks.now().process.started_realtime_ns = kStartNs + kUpNs - 30 * kSecondNs;
  EXPECT_EQ(first(looks.findings(), Rule::kStrangers).severity, Severity::kWarning);
}

TEST(Strangers, ConnectionLimitAndBrokenFlows) {
  Looks looks;
  looks.counter(Counter::kRefusedFull) = 1;
  looks.counter(Counter::kRedials) = 2;
  const Findings findings = looks.findings();
  EXPECT_EQ(count(findings, Rule::kLimit), 1u);
  EXPECT_EQ(count(findings, Rule::kUnreachable), 1u);
}

}  // namespace
}  // namespace ztcp::stat
