// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_stat/looks.h"

namespace ztcp::stat {
namespace {

void add_messages(Looks& looks, std::size_t peer, std::uint64_t nanoseconds, std::uint32_t number) {
  stats::Latency latency;
  latency.peer = "10.0.0." + std::to_string(2 + peer);
  latency.by_class[4][stats::Histogram::bucket_of(nanoseconds)] = number;
  looks.now().latencies.push_back(latency);
}

TEST(Outliers, SlowestOfSeveralPeersByLatency) {
  Looks looks(4);
  for (std::size_t peer = 0; peer < 4; ++peer)
    add_messages(looks, peer, peer == 2 ? 2'000'000 : 200'000, 100);
  const Findings findings = looks.findings();
  ASSERT_EQ(count(findings, Rule::kSlowPeer), 1u);
  EXPECT_EQ(findings[0].subject, "peer gpu-04 (10.0.0.4)");
  EXPECT_NE(findings[0].text.find("median of 3 other peers"), std::string::npos);
}

TEST(Outliers, TailOfOnePeer) {
  Looks looks(4);
  for (std::size_t peer = 0; peer < 4; ++peer) add_messages(looks, peer, 200'000, 90);
  looks.now().latencies[1].by_class[4][stats::Histogram::bucket_of(20'000'000)] = 10;
  const Findings findings = looks.findings();
  ASSERT_EQ(count(findings, Rule::kSlowPeer), 1u);
  EXPECT_EQ(findings[0].subject, "peer gpu-03 (10.0.0.3)");
}

TEST(Outliers, FewMessagesOrPeersSayNothing) {
  Looks few(4);
  for (std::size_t peer = 0; peer < 4; ++peer)
    add_messages(few, peer, peer == 2 ? 2'000'000 : 200'000, 10);
  EXPECT_TRUE(few.findings().empty());
  Looks two(2);
  add_messages(two, 0, 2'000'000, 100);
  add_messages(two, 1, 200'000, 100);
  EXPECT_TRUE(two.findings().empty());
}

TEST(Outliers, SlowRateOfABusyPeer) {
  Looks looks(4);
  stats::Connection& slow = looks.now().connections[3];
  slow.bytes = looks.then().connections[3].bytes + 20'000'000;
  EXPECT_EQ(first(looks.findings(), Rule::kSlowPeer).subject, "peer gpu-05 (10.0.0.5)");
  slow.waiting = stats::Waiting::kPeerData;
  EXPECT_TRUE(looks.findings().empty());
}

TEST(Outliers, LongPath) {
  Looks looks(4);
  looks.now().flows[0].rtt_min_ns = 400'000;
  const Finding finding = first(looks.findings(), Rule::kSlowPeer);
  EXPECT_EQ(finding.subject, "peer gpu-02 (10.0.0.2)");
  EXPECT_NE(finding.text.find("shortest round trip is 400 us"), std::string::npos);
}

TEST(Outliers, SlowerLinkOfOneNic) {
  Looks looks;
  looks.now().devices.push_back(looks.now().devices[0]);
  looks.now().devices[1].index = 1;
  looks.now().devices[1].name = "ztcp1";
  EXPECT_TRUE(looks.findings().empty());
  looks.now().devices[1].speed_mbps = 10'000;
  const Finding finding = first(looks.findings(), Rule::kSlowDevice);
  EXPECT_EQ(finding.subject, "ztcp1 of process 4242");
  looks.now().devices[1].carrier = stats::Carrier::kRdma;
  EXPECT_TRUE(looks.findings().empty());
}

}  // namespace
}  // namespace ztcp::stat
