// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_stat/looks.h"

namespace ztcp::stat {
namespace {

void lose(stats::Flow& flow, double share) {
  flow.retransmitted_bytes += static_cast<std::uint64_t>(1e8 * share);
}

TEST(Losses, FromAShareOfOneInTwoThousand) {
  Looks looks;
  lose(looks.now().flows[0], 0.001);
  const Finding finding = first(looks.findings(), Rule::kLosses);
  EXPECT_EQ(finding.subject, "peer gpu-02 (10.0.0.2)");
  EXPECT_EQ(finding.severity, Severity::kWarning);
  EXPECT_NE(finding.text.find("lost 0.10 % of the bytes that ztcp0 sent in the last 1 s"),
            std::string::npos)
      << finding.text;
}

TEST(Losses, FewerAreNoFault) {
  Looks looks;
  lose(looks.now().flows[0], 0.0003);
  EXPECT_EQ(looks.findings().size(), 0u);
}

TEST(Losses, OneInAHundredIsSevere) {
  Looks looks;
  lose(looks.now().flows[0], 0.02);
  EXPECT_EQ(first(looks.findings(), Rule::kLosses).severity, Severity::kSevere);
}

TEST(Losses, NeedlessRetransmissionsAreNoLosses) {
  Looks looks;
  lose(looks.now().flows[0], 0.01);
  looks.now().flows[0].needless_bytes += 1'000'000;
  EXPECT_EQ(looks.findings().size(), 0u);
}

TEST(Losses, TwoSegmentsAreChance) {
  Looks looks;
  looks.now().flows[0].sent_bytes = looks.then().flows[0].sent_bytes + 100'000;
  looks.now().flows[0].retransmitted_bytes += 2 * 8948;
  EXPECT_EQ(looks.findings().size(), 0u);
}

TEST(Losses, OfThePastAreNoFault) {
  Looks looks;
  lose(looks.then().flows[0], 0.5);
  lose(looks.now().flows[0], 0.5);
  EXPECT_EQ(looks.findings().size(), 0u);
}

TEST(Losses, ToMostPeersPointToThisHost) {
  Looks looks(4);
  for (std::size_t i = 0; i < 3; ++i) lose(looks.now().flows[i], 0.001);
  const Findings findings = looks.findings();
  EXPECT_EQ(count(findings, Rule::kLosses), 3u);
  EXPECT_NE(first(findings, Rule::kLosses).text.find("suspect this host's NIC"), std::string::npos);
}

TEST(Losses, ToOneOfManyPeersPointToIt) {
  Looks looks(4);
  lose(looks.now().flows[2], 0.001);
  const Findings findings = looks.findings();
  ASSERT_EQ(count(findings, Rule::kLosses), 1u);
  EXPECT_EQ(first(findings, Rule::kLosses).subject, "peer gpu-04 (10.0.0.4)");
  EXPECT_NE(findings[0].text.find("1 of the 4 peers of ztcp0 lose"), std::string::npos);
}

TEST(Losses, TimeoutsAreNamedWithoutAShare) {
  Looks looks;
  looks.now().flows[0].timeouts += 1;
  const Finding finding = first(looks.findings(), Rule::kTimeouts);
  EXPECT_EQ(finding.severity, Severity::kWarning);
  EXPECT_NE(finding.text.find("1 retransmission timeout of ztcp0"), std::string::npos);
  looks.now().flows[0].timeouts += 3;
  EXPECT_EQ(first(looks.findings(), Rule::kTimeouts).severity, Severity::kSevere);
}

}  // namespace
}  // namespace ztcp::stat
