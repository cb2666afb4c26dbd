// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_stat/looks.h"

namespace ztcp::stat {
namespace {

// A process that died `ago` before the second look.
Page dead(std::int64_t ago_ns) {
  Page page = page_of_process(99);
  page.state = '-';
  page.snapshot.process.is_running = false;
  page.snapshot.process.updated_realtime_ns = kStartNs + kUpNs + kSecondNs - ago_ns;
  return page;
}

TEST(Crashes, DeathBesideARunningJobIsSevere) {
  Looks looks;
  looks.after.pages.push_back(dead(10 * kSecondNs));
  const Finding finding = first(looks.findings(), Rule::kCrashed);
  EXPECT_EQ(finding.severity, Severity::kSevere);
  EXPECT_NE(finding.text.find("died 10 s ago"), std::string::npos);
  EXPECT_NE(finding.command.find("--after-crash /run/ztcp/99.page"), std::string::npos);
}

TEST(Crashes, DeathBeforeTheRunningJobIsOld) {
  Looks looks;
  looks.after.pages.push_back(dead(2 * kUpNs));
  looks.after.pages.back().snapshot.process.started_realtime_ns -= 3 * kUpNs;
  EXPECT_TRUE(looks.findings().empty());
}

TEST(Crashes, DeathInTheFirstSecondsBelongsToTheJob) {
  Looks looks;
  looks.after.pages.push_back(dead(kUpNs + 2 * kSecondNs));
  EXPECT_EQ(count(looks.findings(), Rule::kCrashed), 1u);
}

TEST(Crashes, CleanEndIsNone) {
  Looks looks;
  looks.after.pages.push_back(dead(10 * kSecondNs));
  looks.after.pages.back().snapshot.process.has_ended_cleanly = true;
  EXPECT_TRUE(looks.findings().empty());
}

TEST(Crashes, PageLookedAtAloneIsJudgedByItsWholeLife) {
  Look look;
  look.pages.push_back(dead(kSecondNs));
  look.pages[0].snapshot.connections.push_back(connection_to(2, "gpu-02"));
  look.pages[0].snapshot.flows.push_back(flow_of(2));
  look.pages[0].snapshot.flows[0].retransmitted_bytes = 50'000'000;
  look.realtime_ns = kStartNs + kUpNs + kSecondNs;
  const Findings findings = diagnose(nullptr, look);
  EXPECT_EQ(count(findings, Rule::kCrashed), 1u);
  EXPECT_EQ(count(findings, Rule::kLosses), 1u);
}

TEST(Crashes, DamagedPageIsANote) {
  Looks looks;
  looks.after.pages.push_back({"/run/ztcp/x.page", "another layout version", {}, '?'});
  const Findings findings = looks.findings();
  ASSERT_EQ(count(findings, Rule::kDamagedPage), 1u);
  EXPECT_FALSE(names_a_fault(findings));
}

}  // namespace
}  // namespace ztcp::stat
