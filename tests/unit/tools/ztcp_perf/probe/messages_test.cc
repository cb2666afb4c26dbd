// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/probe/messages.h"

#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_perf/probe/fleet.h"

namespace ztcp::perf::probe {
namespace {

TEST(ProbeMessages, FactsComeBackAsTheyWere) {
  const HostFacts facts = fleet(1, 2).hosts[0].facts;
  const auto line = parse_line(to_line(to_json(facts)));
  ASSERT_TRUE(line);
  const HostFacts read = facts_of(*line);
  EXPECT_EQ(read.version, facts.version);
  EXPECT_EQ(read.plugin, facts.plugin);
  EXPECT_EQ(read.config, facts.config);
  EXPECT_EQ(read.kernel, facts.kernel);
  EXPECT_EQ(read.machine, facts.machine);
  EXPECT_EQ(read.cpus, facts.cpus);
  ASSERT_EQ(read.nics.size(), 2U);
  EXPECT_EQ(read.nics[1].name, "ztcp1");
  EXPECT_EQ(read.nics[1].device, 1);
  EXPECT_EQ(read.nics[1].speed_mbps, 100000);
  EXPECT_EQ(read.nics[1].mtu_bytes, 9000);
}

TEST(ProbeMessages, MeasurementsComeBackAsTheyWere) {
  Measured measured{.latency = {100, 1.5, 2.5, 9},
                    .forward_gbit_per_s = 95.5,
                    .backward_gbit_per_s = 3,
                    .both_gbit_per_s = 98,
                    .resent = 0.25};
  Measured read = measured_of(to_json(measured));
  EXPECT_EQ(read.latency.samples, 100U);
  EXPECT_EQ(read.latency.p50_us, 2.5);
  EXPECT_EQ(read.forward_gbit_per_s, 95.5);
  EXPECT_EQ(read.both_gbit_per_s, 98);
  EXPECT_EQ(read.resent, 0.25);
  measured.resent.reset();
  EXPECT_FALSE(measured_of(to_json(measured)).resent);
}

TEST(ProbeMessages, OnlyObjectsAreLines) {
  for (const char* text : {"", "Welcome to gpu07!", "[1]", "3", "{\"a\": ", "null"})
    EXPECT_FALSE(parse_line(text)) << text;
  EXPECT_TRUE(parse_line("{}"));
}

TEST(ProbeMessages, ValuesOfAnotherTypeOrRangeAreAbsent) {
  const auto line = parse_line(R"({"text": 3, "number": "x", "large": 1e300, "small": -1,
                                   "nics": {"a": 1}})");
  ASSERT_TRUE(line);
  EXPECT_FALSE(text_in(*line, "text"));
  EXPECT_FALSE(text_in(*line, "missing"));
  EXPECT_FALSE(number_in(*line, "number"));
  EXPECT_EQ(whole_number_in(*line, "large"), 0);
  EXPECT_EQ(whole_number_in(*line, "small"), 0);
  EXPECT_TRUE(facts_of(*line).nics.empty());
  EXPECT_EQ(measured_of(*parse_line(R"({"forward_gbit_per_s": -5})")).forward_gbit_per_s, 0);
}

TEST(ProbeMessages, TextsCannotControlATerminal) {
  EXPECT_EQ(text_in(*parse_line(R"({"a": "x\u001b[2Jy"})"), "a"), "x?[2Jy");
}

}  // namespace
}  // namespace ztcp::perf::probe
