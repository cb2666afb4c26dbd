// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/probe/verdict.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_perf/probe/fleet.h"

namespace ztcp::perf::probe {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

std::vector<std::string> faults(const Results& results, const Limits& limits = {}) {
  std::vector<std::string> texts;
  for (const Finding& finding : judge(results, limits))
    if (finding.is_fault) texts.push_back(finding.text);
  return texts;
}

class ProbeVerdict : public testing::TestWithParam<std::size_t> {};

TEST_P(ProbeVerdict, EqualHostsAreFine) {
  const auto findings = judge(fleet(GetParam(), 2), {});
  EXPECT_THAT(findings, IsEmpty());
  EXPECT_EQ(sentence(findings), "all hosts, NICs and rails are fine");
}

TEST_P(ProbeVerdict, ASlowHostIsNamed) {
  Results results = fleet(GetParam());
  const auto slow = [](Direction& direction, PairResult&) { direction.gbit_per_s = 9.4; };
  each_sent(results, 1, slow);
  each_received(results, 1, slow);
  EXPECT_THAT(faults(results),
              ElementsAre("host h1 is slow: 9.4 Gbit/s, the median of all NICs is 96 Gbit/s"));
}

TEST_P(ProbeVerdict, ASlowSenderIsNamed) {
  Results results = fleet(GetParam(), 2);
  each_sent(results, 0, [](Direction& direction, PairResult& pair) {
    if (pair.rail == 1) direction.gbit_per_s = 50;
  });
  EXPECT_THAT(faults(results), ElementsAre(HasSubstr("NIC ztcp1 of h0 is slow as the sender")));
}

TEST_P(ProbeVerdict, LossIsNamedBeforeItsSlowness) {
  Results results = fleet(GetParam());
  const auto lossy = [](Direction& direction, PairResult&) {
    direction.resent = 0.011;
    direction.gbit_per_s = 20;
  };
  each_sent(results, 2, lossy);
  each_received(results, 2, lossy);
  const auto findings = judge(results, {});
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0].kind, "loss");
  EXPECT_EQ(findings[0].host, 2U);
  EXPECT_EQ(findings[1].kind, "bandwidth");
  EXPECT_EQ(sentence(findings),
            "host h2 loses packets: 1.1 % of its bytes were sent again (limit 0.5 %) "
            "(and 1 more)");
}

TEST_P(ProbeVerdict, ALateHostIsNamed) {
  Results results = fleet(GetParam(), 2);
  for (PairResult& pair : results.pairs)
    if (pair.a == 0 || pair.b == 0) pair.latency.p50_us = 90;
  EXPECT_THAT(faults(results),
              ElementsAre("host h0 is late: 90 us one way, the median of all NICs is 20 us"));
}

TEST_P(ProbeVerdict, ABadRailIsNamed) {
  Results results = fleet(GetParam(), 3);
  for (PairResult& pair : results.pairs)
    if (pair.rail == 2) pair.forward.gbit_per_s = pair.backward.gbit_per_s = 30;
  EXPECT_THAT(faults(results), ElementsAre(HasSubstr("rail 2 (ztcp2) is slow: 30 Gbit/s")));
}

TEST_P(ProbeVerdict, AHostThatFailsToConnectIsNamedWithTheFirstReason) {
  Results results = fleet(GetParam());
  for (PairResult& pair : results.pairs)
    if (pair.a == 1 || pair.b == 1) pair.failure = "connect failed";
  const auto texts = faults(results);
  ASSERT_EQ(texts.size(), 1U);
  EXPECT_THAT(texts[0], HasSubstr("host h1 fails: h"));
  EXPECT_THAT(texts[0], HasSubstr(": connect failed"));
}

TEST_P(ProbeVerdict, BothDirectionsAtOnceAreJudgedWhereEachAloneIsGood) {
  Results results = fleet(GetParam());
  for (PairResult& pair : results.pairs)
    if (pair.a == 2 || pair.b == 2) pair.both_gbit_per_s = 100;
  EXPECT_THAT(faults(results), ElementsAre(HasSubstr("host h2 is slow when both ends send")));
}

INSTANTIATE_TEST_SUITE_P(Hosts, ProbeVerdict, testing::Values(3, 4, 9));

TEST(ProbeVerdict, RailsOfOtherSpeedsAreComparedAmongThemselves) {
  Results results = fleet(4, 2);
  for (Host& host : results.hosts) host.facts.nics[1].speed_mbps = 10000;
  for (PairResult& pair : results.pairs)
    if (pair.rail == 1) {
      pair.forward.gbit_per_s = pair.backward.gbit_per_s = 9;
      pair.both_gbit_per_s = 17;
    }
  EXPECT_THAT(faults(results), IsEmpty());
}

TEST(ProbeVerdict, BetweenTwoHostsTheWorseDirectionIsNamed) {
  Results results = fleet(2);
  results.pairs[0].backward.gbit_per_s = 12;
  EXPECT_THAT(faults(results), ElementsAre(HasSubstr("the path from h1 to h0 is slow: 12 Gbit/s")));
}

TEST(ProbeVerdict, AbsoluteLimitsHoldAtAnyMedian) {
  EXPECT_THAT(faults(fleet(4), {.min_gbit_per_s = 200}),
              ElementsAre(HasSubstr("the network as a whole is slow")));
  EXPECT_THAT(faults(fleet(4), {.max_latency_us = 10}),
              ElementsAre(HasSubstr("the network as a whole is late")));
}

TEST(ProbeVerdict, LatenciesNearTheMedianAreNoise) {
  Results results = fleet(4);
  for (PairResult& pair : results.pairs) pair.latency.p50_us = pair.a == 0 ? 12 : 4;
  EXPECT_THAT(faults(results), IsEmpty());
}

TEST(ProbeVerdict, AHostWithoutMeasurementsComesFirst) {
  Results results = fleet(3);
  results.hosts.push_back({.name = "h3", .failure = "exit status 255", .facts = {}});
  each_sent(results, 0, [](Direction& direction, PairResult&) { direction.gbit_per_s = 1; });
  const auto findings = judge(results, {});
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_EQ(findings[0].text, "host h3: exit status 255");
  EXPECT_EQ(findings[0].host, 3U);
}

TEST(ProbeVerdict, ADifferentVersionIsAFaultOfItsHostAndAKernelIsANote) {
  Results results = fleet(4);
  results.hosts[2].facts.version = "0.0.9";
  results.hosts[0].facts.kernel = "5.15";
  const auto findings = judge(results, {});
  ASSERT_EQ(findings.size(), 2U);
  EXPECT_TRUE(findings[0].is_fault);
  EXPECT_EQ(findings[0].kind, "version");
  EXPECT_EQ(findings[0].host, 2U);
  EXPECT_FALSE(findings[1].is_fault);
  EXPECT_EQ(sentence(findings), "hosts differ in version: 0.1.0 on 3 hosts, 0.0.9 on h2");
}

TEST(ProbeVerdict, NothingMeasuredIsJudged) {
  Results results = fleet(2);
  results.pairs.clear();
  EXPECT_THAT(faults(results), IsEmpty());
}

}  // namespace
}  // namespace ztcp::perf::probe
