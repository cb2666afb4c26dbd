// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/view/rows.h"

#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_stat/looks.h"

namespace ztcp::stat {
namespace {

TEST(Rows, WorstConnectionStandsFirst) {
  Looks looks(4);
  looks.now().flows[1].retransmitted_bytes += 1'000'000;
  looks.now().connections[2].is_stalled = true;
  looks.now().connections[3].bytes += 500'000'000;
  const Rows rows = rows_of(&looks.before, looks.after, Sort::kWorst, "");
  ASSERT_EQ(rows.connections.size(), 4u);
  EXPECT_EQ(rows.connections[0].connection.peer_host, "gpu-04");
  EXPECT_EQ(rows.connections[1].connection.peer_host, "gpu-03");
  EXPECT_EQ(rows.connections[2].connection.peer_host, "gpu-05");
  EXPECT_DOUBLE_EQ(rows.connections[2].rate, 6e8);
}

TEST(Rows, OtherOrders) {
  Looks looks(3);
  looks.now().connections[1].bytes += 1;
  looks.now().flows[2].rtt_p99_ns = 5;
  looks.now().connections[2].progress_ns = 9;
  const auto host = [&](Sort sort) {
    return rows_of(&looks.before, looks.after, sort, "").connections[0].connection.peer_host;
  };
  EXPECT_EQ(host(Sort::kRate), "gpu-03");
  EXPECT_EQ(host(Sort::kRtt), "gpu-04");
  EXPECT_EQ(host(Sort::kWait), "gpu-04");
  EXPECT_EQ(host(Sort::kPeer), "gpu-02");
}

TEST(Rows, FilterByPeerStateAndReason) {
  Looks looks(3);
  looks.now().connections[0].waiting = stats::Waiting::kPeerReceive;
  looks.now().connections[1].state = "closing";
  const auto number = [&](const char* filter) {
    return rows_of(&looks.before, looks.after, Sort::kWorst, filter).connections.size();
  };
  EXPECT_EQ(number("gpu-04"), 1u);
  EXPECT_EQ(number("10.0.0.2"), 1u);
  EXPECT_EQ(number("peer's receive"), 1u);
  EXPECT_EQ(number("closing"), 1u);
  EXPECT_EQ(number("ztcp0"), 3u);
  EXPECT_EQ(number("4242"), 3u);
  EXPECT_EQ(number("nothing"), 0u);
}

TEST(Rows, DeviceSumsItsLanes) {
  Looks looks;
  looks.now().lanes.push_back(looks.now().lanes[0]);
  looks.now().lanes[1].number = 1;
  for (stats::Lane& lane : looks.now().lanes) {
    lane.counters[stats::Counter::kSentBytes] = 500;
    lane.counters[stats::Counter::kRxNoMemory] = 2;
  }
  looks.then().lanes.push_back(looks.then().lanes[0]);
  looks.then().lanes[1].number = 1;
  const Rows rows = rows_of(&looks.before, looks.after, Sort::kWorst, "");
  ASSERT_EQ(rows.devices.size(), 1u);
  EXPECT_EQ(rows.devices[0].lanes, 2u);
  EXPECT_EQ(rows.devices[0].dropped, 4u);
  EXPECT_DOUBLE_EQ(rows.devices[0].send_rate, 1000);
}

TEST(Rows, DeadProcessHasNoConnectionsInALiveView) {
  Looks looks(2);
  looks.now().process.is_running = false;
  EXPECT_TRUE(rows_of(&looks.before, looks.after, Sort::kWorst, "").connections.empty());
  EXPECT_EQ(rows_of(nullptr, looks.after, Sort::kWorst, "").connections.size(), 2u);
}

TEST(Rows, DamagedPageIsListed) {
  Looks looks;
  looks.after.pages.push_back({"/run/x.page", "damaged", {}, '?'});
  const Rows rows = rows_of(&looks.before, looks.after, Sort::kWorst, "");
  ASSERT_EQ(rows.damaged.size(), 1u);
  EXPECT_EQ(rows.damaged[0].error, "damaged");
}

}  // namespace
}  // namespace ztcp::stat
