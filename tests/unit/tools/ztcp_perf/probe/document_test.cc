// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/probe/document.h"

#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_perf/probe/fleet.h"

namespace ztcp::perf::probe {
namespace {

TEST(ProbeDocument, HasEverythingThatTheTableHas) {
  Results results = fleet(3, 2);
  results.hosts.push_back({.name = "h3", .failure = "exit status 255", .facts = {}});
  results.pairs[0].failure = "connect failed";
  results.pairs[1].forward = {24, 0.125};
  const auto findings = judge(results, {});
  const Json json = document_of(results, findings, 1);
  EXPECT_EQ(json["tool"], "ztcp_perf probe");
  EXPECT_EQ(json["exit_code"], 1);
  EXPECT_EQ(json["verdict"], sentence(findings));
  EXPECT_EQ(json["findings"].size(), findings.size());
  EXPECT_EQ(json["findings"][0]["host"], "h3");
  EXPECT_EQ(json["findings"][0]["severity"], "fault");
  EXPECT_EQ(json["hosts"].size(), 4U);
  EXPECT_EQ(json["hosts"][3]["failure"], "exit status 255");
  EXPECT_TRUE(json["hosts"][3]["facts"].is_null());
  EXPECT_EQ(json["hosts"][0]["facts"]["nics"][1]["name"], "ztcp1");
  EXPECT_EQ(json["pairs"].size(), 6U);
  EXPECT_EQ(json["pairs"][0]["failure"], "connect failed");
  const Json& pair = json["pairs"][1];
  EXPECT_EQ(pair["a_to_b"]["gbit_per_s"], 24);
  EXPECT_EQ(pair["a_to_b"]["resent"], 0.125);
  EXPECT_EQ(pair["latency_us"]["p50"], 20);
  EXPECT_EQ(pair["both_gbit_per_s"], 180);
  EXPECT_EQ(pair["asymmetry"], 0.75);
}

}  // namespace
}  // namespace ztcp::perf::probe
