// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/export/exposition.h"

#include <regex>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include <gtest/gtest.h>

namespace ztcp::stat {
namespace {

stats::Snapshot small_job() {
  stats::Snapshot out;
  out.process.pid = 4711;
  out.process.is_running = true;
  out.process.host = "node\"1\\";
  out.process.version = "0.1.0";
  out.process.rank = 3;
  out.process.ranks = 16;
  out.process.local_rank = 1;
  out.process.started_realtime_ns = 1'500'000'000;
  out.process.cpu_throttled_ns = 2'500'000'000;
  out.process.descriptors_open = 12;
  out.process.descriptors_limit = 1024;
  out.devices.push_back({.index = 0,
                         .name = "ztcp0",
                         .carrier = stats::Carrier::kUserspaceTcp,
                         .link = stats::LinkStatus::kUp,
                         .nic = "0000:17:00.0",
                         .plan = {},
                         .speed_mbps = 100'000,
                         .mtu_bytes = 9000,
                         .address = "10.0.0.1"});
  for (std::uint32_t lane = 0; lane < 2; ++lane) {
    stats::Lane& added = out.lanes.emplace_back();
    added.number = lane;
    added.queue_depth = 2;
    added.counters[stats::Counter::kSentBytes] = 1000 + lane;
    added.counters[stats::Counter::kLateTurnTime] = 1'250'000'000;
  }
  stats::Connection& connection = out.connections.emplace_back();
  connection.id = 9;
  connection.state = "open";
  connection.peer = "10.0.0.2:7471";
  connection.communicator = 0xabc;
  connection.waiting = stats::Waiting::kPeerReceive;
  connection.oldest_ns = 3'000'000'000;
  stats::Flow& flow = out.flows.emplace_back();
  flow.connection = 9;
  flow.rtt_ns = 50'000;
  flow.in_flight_bytes = 77;
  stats::Latency& latency = out.latencies.emplace_back();
  latency.peer = "10.0.0.2";
  latency.by_class[0][stats::Histogram::bucket_of(10'000)] = 5;
  latency.by_class[0][stats::Histogram::bucket_of(2'000'000'000)] = 1;
  return out;
}

std::string text_of(const stats::Snapshot& snapshot) {
  return exposition(std::vector<stats::Snapshot>{snapshot}, 0);
}

TEST(ExpositionTest, EachLineHasTheFormThatPrometheusReads) {
  const std::regex comment(R"(# (HELP|TYPE) ztcp_[a-z_]+ .+)");
  const std::regex sample(
      R"re(ztcp_[a-z_]+\{([a-z_]+="([^"\\]|\\.)*"(,[a-z_]+="([^"\\]|\\.)*")*)?\} [0-9.e+-]+)re");
  std::istringstream lines(text_of(small_job()));
  for (std::string line; std::getline(lines, line);)
    EXPECT_TRUE(std::regex_match(line, comment) || std::regex_match(line, sample)) << line;
}

TEST(ExpositionTest, NoSeriesStandsTwice) {
  std::set<std::string> seen;
  std::istringstream lines(text_of(small_job()));
  for (std::string line; std::getline(lines, line);) {
    if (line.front() == '#') continue;
    EXPECT_TRUE(seen.insert(line.substr(0, line.rfind(' '))).second) << line;
  }
}

TEST(ExpositionTest, LabelsAreEscaped) {
  EXPECT_NE(text_of(small_job()).find(R"(node="node\"1\\")"), std::string::npos);
}

TEST(ExpositionTest, LanesOfADeviceAreSummedAndTimesAreSeconds) {
  const std::string text = text_of(small_job());
  const std::string labels = R"({node="node\"1\\",rank="3",pid="4711",device="ztcp0"})";
  EXPECT_NE(text.find("ztcp_sent_bytes_total" + labels + " 2001\n"), std::string::npos);
  EXPECT_NE(text.find("ztcp_late_turn_time_seconds_total" + labels + " 2.5\n"), std::string::npos);
  EXPECT_NE(text.find("ztcp_messages_in_flight" + labels + " 4\n"), std::string::npos);
  EXPECT_NE(text.find("ztcp_device_speed_bytes_per_second" + labels + " 12500000000"),
            std::string::npos);
}

TEST(ExpositionTest, DevicesHaveTheirFactsAsLabels) {
  stats::Snapshot job = small_job();
  job.devices[0].gpu = "0000:18:00.0";
  const std::string text = text_of(job);
  EXPECT_NE(text.find(R"(nic="0000:17:00.0",address="10.0.0.1",mtu_bytes="9000",numa_node="",)"
                      R"(gpu="0000:18:00.0"} 1)"),
            std::string::npos)
      << text;
}

TEST(ExpositionTest, PeersHaveTheirAddressAndCommunicator) {
  const std::string text = text_of(small_job());
  const std::string labels = R"(peer="10.0.0.2",comm="0xabc",way="send"})";
  EXPECT_NE(text.find(labels + " 3\n"), std::string::npos);
  EXPECT_NE(text.find(labels + " 77\n"), std::string::npos);
}

TEST(ExpositionTest, PeersHaveTheirHostWhereItIsKnown) {
  stats::Snapshot job = small_job();
  job.connections[0].peer_host = "gpu-02";
  job.latencies[0].host = "gpu-02";
  const std::string text = text_of(job);
  EXPECT_NE(text.find(R"(peer="gpu-02",comm="0xabc",way="send"} 3)"), std::string::npos) << text;
  EXPECT_NE(text.find(R"(peer="gpu-02",way=")"), std::string::npos) << text;
  EXPECT_EQ(text.find("10.0.0.2"), std::string::npos) << text;
}

TEST(ExpositionTest, HistogramsAreCumulative) {
  const std::string text = text_of(small_job());
  const auto count = [&](const std::string& limit) {
    const std::string label = R"(way="send",max_bytes="256",le=")" + limit + "\"} ";
    const std::size_t at = text.find(label);
    return at == std::string::npos ? -1 : std::stoi(text.substr(at + label.size()));
  };
  EXPECT_EQ(count("4e-06"), 0);
  EXPECT_EQ(count("1.6e-05"), 5);
  EXPECT_EQ(count("1.048576"), 5);
  EXPECT_EQ(count("4.194304"), 6);
  EXPECT_EQ(count("+Inf"), 6);
}

TEST(ExpositionTest, ADeadProcessReportsOnlyItsEnd) {
  stats::Snapshot snapshot = small_job();
  snapshot.process.is_running = false;
  const std::string text = text_of(snapshot);
  EXPECT_NE(text.find("ztcp_process_crashed{node=\"node\\\"1\\\\\",rank=\"3\",pid=\"4711\"} 1\n"),
            std::string::npos);
  EXPECT_EQ(text.find("ztcp_sent_bytes_total"), std::string::npos);
  snapshot.process.has_ended_cleanly = true;
  EXPECT_NE(text_of(snapshot).find("ztcp_process_crashed{node=\"node\\\"1\\\\\",rank=\"3\","
                                   "pid=\"4711\"} 0\n"),
            std::string::npos);
}

TEST(ExpositionTest, AllMetricsFollowPrometheusNames) {
  std::set<std::string> names;
  for (const MetricText& metric : all_metrics()) {
    EXPECT_TRUE(names.insert(metric.name).second) << metric.name;
    EXPECT_EQ(metric.name.ends_with("_total"), metric.type == "counter") << metric.name;
    EXPECT_EQ(metric.help.back(), '.') << metric.name;
  }
}

TEST(ExpositionTest, DamagedPagesAreCounted) {
  EXPECT_NE(exposition({}, 2).find("ztcp_pages_damaged{} 2\n"), std::string::npos);
}

}  // namespace
}  // namespace ztcp::stat
