// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_stat/looks.h"
#include "tools/ztcp_stat/view/rows.h"

namespace ztcp::stat {
namespace {

using stats::Counter;

// Connections of RDMA over mlx5_0 alone.
Looks rdma_looks(std::size_t peers) {
  Looks looks(peers);
  looks.now().devices[0].carrier = stats::Carrier::kRdma;
  for (stats::Flow& flow : looks.now().flows) {
    flow.state = "up";
    flow.local = "mlx5_0 port 1";
    flow.remote = "mlx5_4 fe80::4";
  }
  return looks;
}

TEST(LostRails, HealthyOnesAreNotNamed) {
  Looks looks = rdma_looks(2);
  looks.now().flows[0].failures = looks.now().flows[0].recoveries = 2;
  EXPECT_TRUE(looks.findings().empty());
}

TEST(LostRails, OneIsNamedWithItsPeer) {
  Looks looks = rdma_looks(2);
  looks.now().flows[1].state = "down";
  looks.now().flows[1].failures = 1;
  const Finding finding = first(looks.findings(), Rule::kUnreachable);
  EXPECT_EQ(finding.severity, Severity::kWarning);
  EXPECT_EQ(finding.subject, "ztcp0 of process 4242");
  EXPECT_EQ(finding.text,
            "has lost the rail over mlx5_0 port 1 to mlx5_4 fe80::4 at peer gpu-03 (10.0.0.3); its "
            "messages go over other rails");
}

TEST(LostRails, ThoseToAllPeersAccuseThisHost) {
  Looks looks = rdma_looks(3);
  for (stats::Flow& flow : looks.now().flows) flow.failures = 1;
  EXPECT_NE(first(looks.findings(), Rule::kUnreachable)
                .text.find("3 of 3 peers: suspect this host's NIC"),
            std::string::npos);
  EXPECT_EQ(count(looks.findings(), Rule::kUnreachable), 1u);
}

TEST(LostRails, TheViewCountsThoseThatAreLeft) {
  Looks looks = rdma_looks(1);
  looks.now().flows.push_back(looks.now().flows[0]);
  looks.now().flows[1].number = 1;
  looks.now().flows[1].failures = 1;
  const Rows rows = rows_of(&looks.before, looks.after, Sort::kWorst, "");
  EXPECT_EQ(rows.connections.at(0).flows, 2u);
  EXPECT_EQ(rows.connections.at(0).lost_flows, 1u);
}

TEST(RdmaCounters, LostRailsAndFailedWorkAreNamed) {
  Looks looks = rdma_looks(1);
  looks.counter(Counter::kLostRails) = 2;
  looks.counter(Counter::kNoAnswers) = 3;
  const Findings findings = looks.findings();
  EXPECT_EQ(count(findings, Rule::kUnreachable), 2u);
  EXPECT_NE(findings[0].text.find("3 work requests that a peer's NIC did not answer"),
            std::string::npos);
  EXPECT_EQ(rows_of(&looks.before, looks.after, Sort::kWorst, "").devices.at(0).timeouts, 3u);
}

TEST(RdmaLinks, ADownPortIsLookedAtWithRdmaTools) {
  Looks looks = rdma_looks(1);
  looks.now().devices[0].link = stats::LinkStatus::kDown;
  EXPECT_EQ(first(looks.findings(), Rule::kLinkDown).command, "rdma link");
}

}  // namespace
}  // namespace ztcp::stat
