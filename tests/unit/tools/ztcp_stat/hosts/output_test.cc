// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/hosts/output.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

namespace ztcp::stat::hosts {
namespace {

std::vector<Report> fleet() {
  std::vector<Report> reports;
  for (int host = 0; host < 6; ++host)
    reports.push_back({"gpu" + std::to_string(host),
                       {{"mtu", "ztcp0", Severity::kGood, "MTU 9000"},
                        {"cpus", "", Severity::kWarning, "2 CPUs"},
                        {"nic", "ztcp1", Severity::kGood, "up"}}});
  reports[4].checks[0] = {"mtu", "ztcp0", Severity::kFault, "MTU 1500"};
  reports[2].checks.pop_back();
  return reports;
}

TEST(HostsOutput, TextHasAHeadingForEachDifferenceAndALineForEachValue) {
  EXPECT_EQ(to_text(merge(fleet())),
            "mtu ztcp0\n"
            "  5 hosts                            ok       MTU 9000\n"
            "  gpu4                               fault    MTU 1500\n"
            "nic ztcp1\n"
            "  5 hosts                            ok       up\n"
            "  gpu2                               -        not checked there\n"
            "cpus\n"
            "  all hosts                          warning  2 CPUs\n"
            "6 hosts, 3 checks: 2 differ\n");
}

TEST(HostsOutput, JsonHasTheSame) {
  const auto json = nlohmann::json::parse(to_json(merge(fleet()), 1));
  EXPECT_EQ(json["exit_code"], 1);
  EXPECT_EQ(json["hosts"].size(), 6U);
  ASSERT_EQ(json["differences"].size(), 2U);
  EXPECT_EQ(json["differences"][0]["values"][1]["hosts"][0], "gpu4");
  EXPECT_EQ(json["differences"][0]["values"][1]["severity"], "fault");
  EXPECT_EQ(json["differences"][1]["hosts_without"], 1);
  EXPECT_EQ(json["differences"][1]["names_without"][0], "gpu2");
  EXPECT_EQ(json["common"][0]["name"], "cpus");
}

TEST(HostsOutput, EqualHostsAreSaidToBe) {
  EXPECT_EQ(to_text(merge({{"a", {}}, {"b", {}}})), "2 hosts, 0 checks: all are equal\n");
}

TEST(HostsOutput, NoHostIsNotSaidToBeEqual) {
  EXPECT_EQ(to_text(merge({})), "no report could be read\n");
}

}  // namespace
}  // namespace ztcp::stat::hosts
