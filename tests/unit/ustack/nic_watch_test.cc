// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/ustack/nic_watch.h"

#include <algorithm>

#include <gtest/gtest.h>

namespace ztcp::ustack {
namespace {

using namespace std::chrono_literals;

struct NicWatchTest : testing::Test {
  // As often as a poller does.
  std::vector<std::string> look_for(Duration span) {
    std::vector<std::string> said;
    for (const TimePoint end = now + span; now < end; now += 1s)
      for (std::string& line : watch.look(now, counts)) said.push_back(std::move(line));
    return said;
  }
  NicWatch watch;
  NicCounts counts;
  TimePoint now{1000s};
};

TEST_F(NicWatchTest, AQuietNetworkIsNoNews) {
  counts.tcp.rx_segments = 1'000'000'000;
  counts.acceptor.refused_flows = 3000;  // An all-to-all gets fewer flows, as is meant.
  EXPECT_TRUE(look_for(1h).empty());
}

TEST_F(NicWatchTest, StrangersAreNamedWithTheirCountsAndTheMend) {
  look_for(3s);
  counts.acceptor.strays_bad_magic = 30;
  counts.acceptor.strays_timed_out = 7;
  const auto said = look_for(1s);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_EQ(said[0],
            "37 connections by strangers were turned away in 3 s (30 strays_bad_magic, 7 "
            "strays_timed_out): open messages.listen_port to the job's hosts alone (security "
            "group); hosts of the job need the same ztcp and cluster_key");
}

TEST_F(NicWatchTest, EachKindSpeaksOnceAMinute) {
  int lines = 0;
  for (int second = 0; second < 600; ++second) {
    counts.acceptor.strays_unknown_cookie += 100;
    counts.tcp.rx_bad_checksum += 100;
    lines += static_cast<int>(look_for(1s).size());
  }
  EXPECT_EQ(lines, 2 * 10);
}

TEST_F(NicWatchTest, TheNextLineCountsFromTheLast) {
  counts.tcp.rx_bad_checksum = 10;
  ASSERT_EQ(look_for(1s).size(), 1U);
  counts.tcp.rx_bad_checksum = 500;
  EXPECT_TRUE(look_for(59s).empty());
  const auto said = look_for(1s);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_TRUE(said[0].starts_with("490 frames arrived damaged in 60 s (490 rx_bad_checksum): "))
      << said[0];
}

// One a minute for a day is a cable nobody would change for it.
TEST_F(NicWatchTest, AFewNowAndThenStayBelowTheThreshold) {
  for (int minute = 0; minute < 1440; ++minute) {
    counts.tcp.rx_bad_checksum += 1;
    EXPECT_TRUE(look_for(60s).empty());
  }
}

TEST_F(NicWatchTest, WhatWasHeldAndDroppedIsSaidOfBothWhoDropIt) {
  counts.tcp.rx_dropped_no_memory = 600;
  counts.link.rx_dropped_no_memory = 400;
  const auto said = look_for(1s);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_NE(said[0].find("(600 rx_dropped_no_memory, 400 link_rx_dropped_no_memory)"),
            std::string::npos)
      << said[0];
}

TEST_F(NicWatchTest, ThreeQuarrelsAboutAnAddressAreNews) {
  counts.tcp.arp_mac_changes = 1;  // A neighbour that moved.
  EXPECT_TRUE(look_for(60s).empty());
  counts.tcp.arp_conflicts = 3;
  const auto said = look_for(1s);
  ASSERT_EQ(said.size(), 1U);
  EXPECT_TRUE(said[0].starts_with(
      "4 times a neighbour's MAC address changed or was claimed by another host in 60 s (1 "
      "arp_mac_changes, 3 arp_conflicts): two hosts have one address"))
      << said[0];
}

TEST(NicSummary, NamesWhatIsUnusualAndOnlyThat) {
  NicCounts counts;
  counts.link.tx_frames = 12;
  counts.link.tx_bytes = 3456;
  EXPECT_EQ(summary(counts),
            "sent 12 frames (3456 bytes), received 0 frames (0 bytes), retransmitted 0 bytes, 0 "
            "timeouts");
  counts.acceptor.strays_bad_key = 1;
  counts.ring_full = 7;
  EXPECT_TRUE(summary(counts).ends_with("0 timeouts; 1 strays_bad_key, 7 tx_ring_full"))
      << summary(counts);
}

// A line of the log has 1023 bytes, the NIC's name among them.
TEST(NicSummary, FitsALineWhateverWasCounted) {
  NicCounts counts;
  // All of them are counters and nothing else.
  const auto fill = [](auto& group) {
    auto* at = reinterpret_cast<std::uint64_t*>(&group);
    std::fill_n(at, sizeof(group) / sizeof(*at), 1'000'000ULL);
  };
  fill(counts.tcp);
  fill(counts.acceptor);
  fill(counts.link);
  counts.ring_full = 1'000'000ULL;
  EXPECT_LT(summary(counts).size(), 960U);
}

}  // namespace
}  // namespace ztcp::ustack
