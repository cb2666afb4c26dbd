// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/probe/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_perf/probe/fleet.h"

namespace ztcp::perf::probe {
namespace {

using testing::HasSubstr;

std::string table_of(const Results& results) {
  const Limits limits;
  return render(results, limits, judge(results, limits));
}

TEST(ProbeTable, MarksBadCellsAndEndsWithTheVerdict) {
  Results results = fleet(3);
  each_sent(results, 1, [](Direction& direction, PairResult&) { direction.gbit_per_s = 9.41; });
  const std::string table = table_of(results);
  EXPECT_THAT(table, HasSubstr("# 3 hosts, 1 rail, 3 rounds"));
  EXPECT_THAT(table, HasSubstr("rail 0 (ztcp0): Gbit/s from row to column\n"));
  EXPECT_THAT(table, HasSubstr("\nh1              9.41*       -     9.41*\n"));
  EXPECT_TRUE(
      table.ends_with("\nverdict: host h1 is slow as the sender: 9.41 Gbit/s, the median of "
                      "all NICs is 96 Gbit/s\n"))
      << table;
}

TEST(ProbeTable, FitsATerminalWithUpToTwelveHosts) {
  Results results = fleet(12);
  for (Host& host : results.hosts) host.name = "a-rather-long-name-of-" + host.name;
  const std::string table = table_of(results);
  std::size_t longest = 0;
  std::size_t column = 0;
  for (const char c : table) {
    column = c == '\n' ? 0 : column + 1;
    longest = std::max(longest, column);
  }
  EXPECT_LE(longest, 120U);
  EXPECT_THAT(table, HasSubstr("name-of-h11"));
}

TEST(ProbeTable, ManyHostsHaveOneCharacterAPair) {
  Results results = fleet(13);
  for (PairResult& pair : results.pairs) {
    if (pair.a == 0 && pair.b == 1) pair.failure = "connect failed";
    if (pair.a == 0 && pair.b == 2) pair.forward.gbit_per_s = 1;
    if (pair.a == 0 && pair.b == 3) pair.backward.resent = 0.1;
    if (pair.a == 0 && pair.b == 4) pair.latency.p50_us = 500;
  }
  std::erase_if(results.pairs, [](const PairResult& pair) { return pair.a == 0 && pair.b == 5; });
  const std::string table = table_of(results);
  EXPECT_THAT(table, HasSubstr("\nh0   XS.L-.......\n"));
  EXPECT_THAT(table, HasSubstr("\nh3  %.. .........\n"));
}

TEST(ProbeTable, TellsThatATransportDoesNotCountLoss) {
  Results results = fleet(3);
  for (PairResult& pair : results.pairs) pair.forward.resent = pair.backward.resent = std::nullopt;
  EXPECT_THAT(table_of(results), HasSubstr("packets sent again: this transport does not tell"));
}

TEST(ProbeTable, ShowsHostsThatDidNotAnswer) {
  Results results;
  results.hosts.push_back({.name = "h0", .failure = "exit status 255", .facts = {}});
  results.hosts.push_back({.name = "h1", .failure = "exit status 255", .facts = {}});
  EXPECT_THAT(table_of(results), HasSubstr("BAD  host h0: exit status 255\n"));
}

}  // namespace
}  // namespace ztcp::perf::probe
