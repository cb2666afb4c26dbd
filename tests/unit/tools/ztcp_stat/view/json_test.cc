// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/view/json.h"

#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_stat/looks.h"

namespace ztcp::stat {
namespace {

TEST(Json, ProcessesWithTheirListsAndRates) {
  Looks looks(2);
  looks.counter(stats::Counter::kSentBytes) = 1234;
  looks.counter(stats::Counter::kLateTurnTime) = 5;
  looks.now().process.config_hash = 0xabc;
  const nlohmann::json json = json_of(&looks.before, looks.after);
  const auto& process = json["processes"][0];
  EXPECT_EQ(process["pid"], 4242);
  EXPECT_EQ(process["rank"], 3);
  EXPECT_EQ(process["config_hash"], "0000000000000abc");
  EXPECT_EQ(process["devices"][0]["send_bytes_per_s"], 1234.0);
  EXPECT_EQ(process["lanes"][0]["counters"]["sent_bytes"], 1234);
  EXPECT_EQ(process["lanes"][0]["counters"]["late_turn_time_ns"], 5);
  EXPECT_EQ(process["connections"].size(), 2u);
  EXPECT_EQ(process["connections"][0]["bytes_per_s"], 1e8);
  EXPECT_EQ(process["flows"][1]["mss_bytes"], 8948);
}

TEST(Json, FactsOfADevice) {
  Looks looks;
  stats::Device& device = looks.now().devices[0];
  device.address = "10.0.0.1";
  device.numa_node = 1;
  device.gpu = "0000:18:00.0";
  const nlohmann::json json = json_of(&looks.before, looks.after);
  const auto& told = json["processes"][0]["devices"][0];
  EXPECT_EQ(told["address"], "10.0.0.1");
  EXPECT_EQ(told["mtu_bytes"], 9000);
  EXPECT_EQ(told["numa_node"], 1);
  EXPECT_EQ(told["gpu"], "0000:18:00.0");
}

TEST(Json, UnknownValuesAreNull) {
  Looks looks;
  looks.now().process.rank = -1;
  looks.now().process.ranks = 0;
  const nlohmann::json json = json_of(nullptr, looks.after);
  EXPECT_TRUE(json["processes"][0]["rank"].is_null());
  EXPECT_TRUE(json["processes"][0]["ranks"].is_null());
  EXPECT_TRUE(json["processes"][0]["devices"][0]["numa_node"].is_null());
  EXPECT_TRUE(json["processes"][0]["config_hash"].is_null());
}

TEST(Json, DamagedPagesAreListed) {
  Looks looks;
  looks.after.pages.push_back({"/run/x.page", "damaged", {}, '?'});
  const nlohmann::json json = json_of(&looks.before, looks.after);
  EXPECT_EQ(json["processes"].size(), 1u);
  EXPECT_EQ(json["damaged"][0]["error"], "damaged");
}

TEST(Json, LatenciesByTheLimitOfTheirSize) {
  Looks looks;
  stats::Latency latency;
  latency.peer = "10.0.0.2";
  latency.by_class[0][stats::Histogram::bucket_of(30'000)] = 10;
  latency.by_class[4][stats::Histogram::bucket_of(3'000'000)] = 1;
  looks.now().latencies.push_back(latency);
  const nlohmann::json json = json_of(&looks.before, looks.after);
  const auto& sizes = json["processes"][0]["latencies"][0]["sizes"];
  ASSERT_EQ(sizes.size(), 2u);
  EXPECT_EQ(sizes[0]["up_to_bytes"], 256);
  EXPECT_EQ(sizes[0]["messages"], 10);
  EXPECT_TRUE(sizes[1]["up_to_bytes"].is_null());
}

TEST(Json, Findings) {
  Looks looks;
  EXPECT_EQ(json_of(looks.findings())["healthy"], true);
  looks.now().devices[0].link = stats::LinkStatus::kDown;
  const nlohmann::json json = json_of(looks.findings());
  EXPECT_EQ(json["healthy"], false);
  EXPECT_EQ(json["findings"][0]["rule"], "link_down");
  EXPECT_EQ(json["findings"][0]["severity"], "severe");
}

}  // namespace
}  // namespace ztcp::stat
