// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_stat/looks.h"

namespace ztcp::stat {
namespace {

TEST(Packets, PeerWithASmallerMtuIsNamed) {
  Looks looks(3);
  looks.now().flows[1].mss_bytes = 1448;
  const Findings findings = looks.findings();
  ASSERT_EQ(count(findings, Rule::kMtu), 1u);
  const Finding finding = first(findings, Rule::kMtu);
  EXPECT_EQ(finding.subject, "peer gpu-03 (10.0.0.3)");
  EXPECT_EQ(finding.command, "ping -M do -s 8972 10.0.0.3");
}

TEST(Packets, HeadersAndOptionsAreNoFault) {
  Looks looks;
  looks.now().flows[0].mss_bytes = 9000 - 60 - 32;
  EXPECT_EQ(looks.findings().size(), 0u);
}

TEST(Packets, LoopbackIsNotCompared) {
  Looks looks;
  looks.now().devices.push_back(looks.now().devices[0]);
  looks.now().devices[1].index = 1;
  looks.now().devices[0].mtu_bytes = 65536;
  looks.now().flows[0].mss_bytes = 32741;
  EXPECT_EQ(looks.findings().size(), 0u);
}

TEST(Packets, RdmaPacketsAreSmallerThanTheMtu) {
  Looks looks;
  looks.now().devices[0].carrier = stats::Carrier::kRdma;
  looks.now().flows[0].mss_bytes = 4096;
  EXPECT_EQ(looks.findings().size(), 0u);
}

TEST(Packets, CutsOfThePathMtuStayAFault) {
  Looks looks;
  looks.then().lanes[0].counters[stats::Counter::kPathMtuCuts] = 2;
  looks.counter(stats::Counter::kPathMtuCuts) = 2;
  const Finding finding = first(looks.findings(), Rule::kMtu);
  EXPECT_EQ(finding.subject, "ztcp0 of process 4242");
  EXPECT_NE(finding.text.find("2 connections"), std::string::npos);
}

TEST(Packets, UnequalDevicesAreANote) {
  Looks looks;
  looks.now().devices.push_back(looks.now().devices[0]);
  looks.now().devices[1].index = 1;
  looks.now().devices[1].name = "ztcp1";
  looks.now().devices[1].mtu_bytes = 1500;
  const Findings findings = looks.findings();
  EXPECT_EQ(first(findings, Rule::kMtu).subject, "ztcp1 of process 4242");
  EXPECT_FALSE(names_a_fault(findings));
}

}  // namespace
}  // namespace ztcp::stat
