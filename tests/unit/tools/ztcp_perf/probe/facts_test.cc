// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/probe/facts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_perf/probe/fleet.h"

namespace ztcp::perf::probe {
namespace {

using testing::ElementsAre;

TEST(ProbeFacts, EqualHostsDoNotDiffer) { EXPECT_TRUE(compare(fleet(5, 2).hosts).empty()); }

TEST(ProbeFacts, EachDifferenceIsNamedWithItsHosts) {
  std::vector<Host> hosts = fleet(5, 2).hosts;
  hosts[3].facts.version = "0.0.9";
  hosts[1].facts.nics[1].mtu_bytes = 1500;
  hosts[2].facts.nics[0].speed_mbps = 10000;
  hosts[0].facts.config = "cc";
  hosts[4].facts.cpus = 4;
  hosts[4].facts.kernel = "5.15";
  std::vector<std::string> lines;
  std::vector<bool> faults;
  for (const Difference& difference : compare(hosts)) {
    lines.push_back(describe(difference, hosts));
    faults.push_back(difference.is_fault);
  }
  EXPECT_THAT(lines, ElementsAre("hosts differ in version: 0.1.0 on 4 hosts, 0.0.9 on h3",
                                 "hosts differ in config: bb on 4 hosts, cc on h0",
                                 "hosts differ in speed of rail 0: 100000 Mb/s on 4 hosts, "
                                 "10000 Mb/s on h2",
                                 "hosts differ in MTU of rail 1: 9000 on 4 hosts, 1500 on h1",
                                 "hosts differ in kernel: 6.1 on 4 hosts, 5.15 on h4",
                                 "hosts differ in CPUs: 8 on 4 hosts, 4 on h4"));
  EXPECT_THAT(faults, ElementsAre(true, true, true, true, false, false));
}

TEST(ProbeFacts, AMissingNicIsADifferenceAndAnUnknownMtuIsNone) {
  std::vector<Host> hosts = fleet(3, 2).hosts;
  hosts[0].facts.nics[0].mtu_bytes = 0;
  hosts[2].facts.nics.pop_back();
  const auto differences = compare(hosts);
  ASSERT_EQ(differences.size(), 1U);
  EXPECT_EQ(describe(differences[0], hosts),
            "hosts differ in NICs: ztcp0 ztcp1 on h0, h1, ztcp0 on h2");
}

TEST(ProbeFacts, HostsWithoutFactsAreNotCompared) {
  std::vector<Host> hosts = fleet(3).hosts;
  hosts[1] = Host{.name = "h1", .failure = "does not answer", .facts = {}};
  EXPECT_TRUE(compare(hosts).empty());
}

TEST(ProbeFacts, ClocksAreComparedWithinTheErrorOfTheirReadings) {
  std::vector<Host> hosts = fleet(4).hosts;
  hosts[1].clock_offset_s = 0.25;
  hosts[1].clock_error_s = 0.2;
  EXPECT_TRUE(compare(hosts).empty());
  hosts[2].clock_offset_s = -3.2;
  const auto differences = compare(hosts);
  ASSERT_EQ(differences.size(), 1U);
  EXPECT_EQ(describe(differences[0], hosts),
            "hosts differ in clock: equal on 3 hosts, 3.2 s behind on h2");
  EXPECT_FALSE(differences[0].is_fault);
}

TEST(ProbeFacts, TwoNamesOfOneMachineAreNoted) {
  std::vector<Host> hosts = fleet(3).hosts;
  hosts[2].facts.machine = hosts[0].facts.machine;
  const auto differences = compare(hosts);
  ASSERT_EQ(differences.size(), 1U);
  EXPECT_EQ(describe(differences[0], hosts), "h0, h2 are one machine");
}

TEST(ProbeFacts, ALongListOfHostsIsCut) {
  const std::vector<Host> hosts = fleet(9).hosts;
  EXPECT_EQ(names_of({0, 1, 2, 3, 4, 8}, hosts), "h0, h1, h2, h3 and 2 more");
}

}  // namespace
}  // namespace ztcp::perf::probe
