// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/engine/nic_watch.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace ztcp::ustack {
namespace {

using namespace std::chrono_literals;

struct NicWatchTest : testing::Test {
  // Checks once a second, as an Engine does.
  std::vector<Finding> check_for(Duration span) {
    std::vector<Finding> found;
    for (const TimePoint end = now + span; now < end; now += 1s)
      watch.check(now, counts, [&](const Finding& finding) { found.push_back(finding); });
    return found;
  }
  // "30 rejected_bad_magic, 7 rejected_timed_out"
  static std::string parts(const Finding& finding) {
    std::string text;
    for (const Finding::Part& part : finding.parts())
      text += (text.empty() ? "" : ", ") + std::to_string(part.count) + " " + part.name;
    return text;
  }
  NicWatch watch;
  NicCounts counts;
  TimePoint now{1000s};
};

TEST_F(NicWatchTest, FaultlessNetworkCausesNoFinding) {
  counts.tcp.rx_segments = 1'000'000'000;
  counts.acceptor.refused_flows = 3000;  // An all-to-all gets fewer flows, as intended.
  EXPECT_TRUE(check_for(1h).empty());
}

TEST_F(NicWatchTest, InvalidHellosAreFoundWithTheirCounters) {
  check_for(3s);
  counts.acceptor.strangers.bad_magic = 30;
  counts.acceptor.strangers.timed_out = 7;
  const auto found = check_for(1s);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].trouble, Trouble::kInvalidHello);
  EXPECT_EQ(found[0].total(), 37U);
  EXPECT_EQ(found[0].span, 3s);
  EXPECT_EQ(parts(found[0]), "30 rejected_bad_magic, 7 rejected_timed_out");
}

TEST_F(NicWatchTest, EachTroubleIsReportedOnceAMinute) {
  int found = 0;
  for (int second = 0; second < 600; ++second) {
    counts.acceptor.strangers.unknown_cookie += 100;
    counts.tcp.rx_bad_checksum += 100;
    found += static_cast<int>(check_for(1s).size());
  }
  EXPECT_EQ(found, 2 * 10);
}

TEST_F(NicWatchTest, SecondFindingCountsFromTheFirst) {
  counts.tcp.rx_bad_checksum = 10;
  ASSERT_EQ(check_for(1s).size(), 1U);
  counts.tcp.rx_bad_checksum = 500;
  EXPECT_TRUE(check_for(59s).empty());
  const auto found = check_for(1s);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].trouble, Trouble::kBadChecksum);
  EXPECT_EQ(found[0].span, 60s);
  EXPECT_EQ(parts(found[0]), "490 tcp_bad_checksums");
}

// No operator would replace a cable for one damaged frame a minute.
TEST_F(NicWatchTest, RareErrorsStayBelowTheThreshold) {
  for (int minute = 0; minute < 1440; ++minute) {
    counts.tcp.rx_bad_checksum += 1;
    EXPECT_TRUE(check_for(60s).empty());
  }
}

TEST_F(NicWatchTest, DropsOfTheStackAndTheLinkAreOneFinding) {
  counts.tcp.rx_dropped_no_memory = 600;
  counts.link.rx_dropped_no_memory = 400;
  const auto found = check_for(1s);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].trouble, Trouble::kRxNoMemory);
  EXPECT_EQ(parts(found[0]), "600 tcp_no_memory, 400 link_no_memory");
}

// The job may be waiting for this one connection.
TEST_F(NicWatchTest, OneConnectionRejectedForLackOfMemoryIsReported) {
  counts.acceptor.refused_no_memory = 1;
  const auto found = check_for(1s);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].trouble, Trouble::kAcceptNoMemory);
  EXPECT_EQ(parts(found[0]), "1 refused_no_memory");
}

TEST_F(NicWatchTest, ThreeArpConflictsAreReported) {
  counts.tcp.arp_mac_changes = 1;  // A neighbour that moved.
  EXPECT_TRUE(check_for(60s).empty());
  counts.tcp.arp_conflicts = 3;
  const auto found = check_for(1s);
  ASSERT_EQ(found.size(), 1U);
  EXPECT_EQ(found[0].trouble, Trouble::kArpConflicts);
  EXPECT_EQ(found[0].total(), 4U);
  EXPECT_EQ(parts(found[0]), "1 arp_mac_changes, 3 arp_conflicts");
}

}  // namespace
}  // namespace ztcp::ustack
