// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/why/diagnose.h"

#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_stat/looks.h"

namespace ztcp::stat {
namespace {

TEST(Diagnose, HealthyJobHasNoFindings) {
  EXPECT_TRUE(Looks(8).findings().empty());
  EXPECT_TRUE(diagnose(nullptr, Look{}).empty());
}

TEST(Diagnose, CausesStandBeforeTheirSymptoms) {
  Looks looks(2);
  looks.now().process.cpu_throttled_ns = 500'000'000;
  looks.counter(stats::Counter::kLateTurns) = 50;
  looks.counter(stats::Counter::kLateTurnTime) = 400'000'000;
  looks.now().connections[0].waiting = stats::Waiting::kPeerData;
  looks.now().connections[0].progress_ns = 8'000'000'000;
  looks.after.pages[0].state = 'T';
  const Findings findings = looks.findings();
  ASSERT_EQ(findings.size(), 4u);
  EXPECT_EQ(findings[0].rule, Rule::kStopped);
  EXPECT_EQ(findings[1].rule, Rule::kQuota);
  EXPECT_EQ(findings[2].rule, Rule::kLate);
  EXPECT_EQ(findings[3].rule, Rule::kNoData);
}

TEST(Diagnose, WorstOfTwoPeersStandsFirst) {
  Looks looks(2);
  looks.now().flows[0].retransmitted_bytes += 100'000;
  looks.now().flows[1].retransmitted_bytes += 200'000;
  const Findings findings = looks.findings();
  ASSERT_EQ(findings.size(), 2u);
  EXPECT_EQ(findings[0].subject, "peer gpu-03 (10.0.0.3)");
}

TEST(Diagnose, RulesHaveDistinctNames) {
  std::vector<std::string> names;
  for (int rule = 0; rule <= static_cast<int>(Rule::kDamagedPage); ++rule)
    names.emplace_back(name_of(static_cast<Rule>(rule)));
  std::sort(names.begin(), names.end());
  EXPECT_EQ(std::adjacent_find(names.begin(), names.end()), names.end());
}

}  // namespace
}  // namespace ztcp::stat
