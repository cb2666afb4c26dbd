// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/hosts/merge.h"

#include <chrono>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ztcp::stat::hosts {
namespace {

using testing::ElementsAre;

std::vector<Report> fleet(std::size_t hosts) {
  std::vector<Report> reports;
  for (std::size_t host = 0; host < hosts; ++host)
    reports.push_back({"h" + std::to_string(host),
                       {{"schema", "", Severity::kGood, "schema 1"},
                        {"mtu", "ztcp0", Severity::kGood, "MTU 9000"},
                        {"mtu", "ztcp1", Severity::kGood, "MTU 9000"},
                        {"cpus", "", Severity::kGood, "8 CPUs"}}});
  return reports;
}

TEST(HostsMerge, EqualReportsDoNotDiffer) {
  const Merged merged = merge(fleet(5));
  EXPECT_EQ(merged.checks, 4U);
  EXPECT_TRUE(merged.differences.empty());
  EXPECT_TRUE(merged.common.empty());
  EXPECT_EQ(merged.hosts.size(), 5U);
}

TEST(HostsMerge, TheWorstDifferenceComesFirstAndTheMostFrequentValue) {
  auto reports = fleet(5);
  reports[0].checks[1].what = "MTU 1500";
  reports[3].checks[2] = {"mtu", "ztcp1", Severity::kFault, "the NIC is gone"};
  const Merged merged = merge(reports);
  ASSERT_EQ(merged.differences.size(), 2U);
  EXPECT_EQ(merged.differences[0].where, "ztcp1");
  EXPECT_EQ(merged.differences[0].worst, Severity::kFault);
  EXPECT_EQ(merged.differences[1].where, "ztcp0");
  ASSERT_EQ(merged.differences[1].values.size(), 2U);
  EXPECT_THAT(merged.differences[1].values[0].hosts, ElementsAre(1, 2, 3, 4));
  EXPECT_THAT(merged.differences[1].values[1].hosts, ElementsAre(0));
}

TEST(HostsMerge, AFaultOnAllHostsIsCommonAndNoDifference) {
  auto reports = fleet(3);
  for (Report& report : reports) report.checks[3].severity = Severity::kWarning;
  const Merged merged = merge(reports);
  EXPECT_TRUE(merged.differences.empty());
  ASSERT_EQ(merged.common.size(), 1U);
  EXPECT_EQ(merged.common[0].name, "cpus");
}

TEST(HostsMerge, HostsWithoutACheckAreNamedWhereTheyAreFew) {
  auto reports = fleet(5);
  reports[2].checks.pop_back();
  reports[4].checks.push_back({"rdma", "mlx5_0", Severity::kGood, "up"});
  const Merged merged = merge(reports);
  ASSERT_EQ(merged.differences.size(), 2U);
  EXPECT_EQ(merged.differences[0].name, "cpus");
  EXPECT_EQ(merged.differences[0].without, 1U);
  EXPECT_THAT(merged.differences[0].hosts_without, ElementsAre(2));
  EXPECT_EQ(merged.differences[1].name, "rdma");
  EXPECT_EQ(merged.differences[1].without, 4U);
  EXPECT_TRUE(merged.differences[1].hosts_without.empty());
}

TEST(HostsMerge, SeveralChecksOfOneNameAreComparedInTheirOrder) {
  auto reports = fleet(2);
  for (Report& report : reports)
    for (const char* what : {"first", "second"})
      report.checks.push_back({"nccl", "NCCL_NET", Severity::kGood, what});
  EXPECT_TRUE(merge(reports).differences.empty());
  std::swap(reports[0].checks[4], reports[0].checks[5]);
  EXPECT_EQ(merge(reports).differences.size(), 2U);
}

TEST(HostsMerge, ManyHostsWithChecksOfTheirOwnTakeNoQuadraticTime) {
  constexpr std::size_t kHosts = 4000;
  auto reports = fleet(kHosts);
  for (std::size_t host = 0; host < kHosts; ++host)
    for (int i = 0; i < 10; ++i)
      reports[host].checks.push_back(
          {"own" + std::to_string(host * 10), std::to_string(i), Severity::kWarning, "only here"});
  const auto began = std::chrono::steady_clock::now();
  const Merged merged = merge(reports);
  const auto took = std::chrono::steady_clock::now() - began;
  EXPECT_EQ(merged.differences.size(), kHosts * 10);
  std::size_t listed = 0;
  for (const Difference& difference : merged.differences) {
    listed += difference.hosts_without.size();
    for (const Value& value : difference.values) listed += value.hosts.size();
  }
  EXPECT_LE(listed, kHosts * 14);
  // Every pair of hosts, with its checks, would be 160 million steps.
  EXPECT_LT(took, std::chrono::seconds(10));
}

TEST(HostsMerge, NoReportsAreEqual) { EXPECT_TRUE(merge({}).differences.empty()); }

}  // namespace
}  // namespace ztcp::stat::hosts
