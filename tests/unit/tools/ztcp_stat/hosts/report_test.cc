// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/hosts/report.h"

#include <gtest/gtest.h>

#include "tools/ztcp_setup/report/report.h"

namespace ztcp::stat::hosts {
namespace {

// Written by set-up itself, so that a change of its format shows here.
std::string written(const setup::CheckReport& report) { return setup::to_json(report); }

TEST(HostsReport, ReadsTheChecksThatSetUpWrites) {
  const auto report = parse_report(
      "gpu07", written({"ztcp.conf",
                        {},
                        {{"mtu", config::Severity::kWarning, {"ztcp0", "MTU 1500", "ip link"}},
                         {"schema", config::Severity::kGood, {"10.0.0.7", "schema 1", ""}},
                         {"pci", config::Severity::kFault, {"ztcp1", "it is gone", ""}}}}));
  ASSERT_TRUE(report);
  EXPECT_EQ(report->host, "gpu07");
  ASSERT_EQ(report->checks.size(), 3U);
  EXPECT_EQ(report->checks[0].name, "mtu");
  EXPECT_EQ(report->checks[0].where, "ztcp0");
  EXPECT_EQ(report->checks[0].severity, Severity::kWarning);
  EXPECT_EQ(report->checks[0].what, "MTU 1500");
  EXPECT_EQ(report->checks[1].severity, Severity::kGood);
  EXPECT_EQ(report->checks[1].where, "ADDRESS");
  EXPECT_EQ(report->checks[2].severity, Severity::kFault);
}

TEST(HostsReport, AConfigThatIsMissingIsAFault) {
  const auto report = parse_report(
      "gpu07", written({"ztcp.conf", {{"ztcp.conf", "no such file", "ztcp_setup"}}, {}}));
  ASSERT_TRUE(report);
  ASSERT_EQ(report->checks.size(), 1U);
  EXPECT_EQ(report->checks[0].name, "problem");
  EXPECT_EQ(report->checks[0].severity, Severity::kFault);
  EXPECT_EQ(report->checks[0].what, "no such file");
}

TEST(HostsReport, OtherInputIsRefusedWithTheReason) {
  EXPECT_EQ(parse_report("h", "\n").error(), "it is empty: the command failed on that host");
  for (const char* text :
       {"ssh: connect to host", "{", "[]", "3", "{\"checks\": []}", "{\"problems\": 1}"})
    EXPECT_EQ(parse_report("h", text).error(), "it is not a report of ztcp_setup --check --json")
        << text;
  EXPECT_EQ(parse_report("h", R"({"mode": "dry-run", "problems": []})").error(),
            "it is a report of another action (dry-run), not of ztcp_setup --check");
}

TEST(HostsReport, ValuesOfAnotherTypeAreSkipped) {
  const auto report =
      parse_report("h", R"({"mode": "check", "problems": [1], "checks": [2, {"name": 3}]})");
  ASSERT_TRUE(report);
  ASSERT_EQ(report->checks.size(), 1U);
  EXPECT_EQ(report->checks[0].name, "");
}

TEST(HostsReport, TextsCannotControlATerminal) {
  const auto report = parse_report(
      "h",
      R"({"problems": [], "checks": [{"name": "a", "severity": "ok", "what": "x\u001b[2J"}]})");
  ASSERT_TRUE(report);
  EXPECT_EQ(report->checks[0].what, "x?[2J");
}

}  // namespace
}  // namespace ztcp::stat::hosts
