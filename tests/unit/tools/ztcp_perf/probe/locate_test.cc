// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/probe/locate.h"

#include <functional>

#include <gtest/gtest.h>

namespace ztcp::perf::probe {
namespace {

using Kind = Suspect::Kind;

// All directions between all hosts, bad where `is_bad` says so.
std::vector<Sample> samples(std::size_t hosts, std::size_t rails,
                            const std::function<bool(const Sample&)>& is_bad) {
  std::vector<Sample> all;
  for (std::size_t from = 0; from < hosts; ++from)
    for (std::size_t to = 0; to < hosts; ++to)
      for (std::size_t rail = 0; rail < rails && from != to; ++rail) {
        Sample sample{from, to, rail};
        sample.is_bad = is_bad(sample);
        all.push_back(sample);
      }
  return all;
}

bool touches(const Sample& sample, std::size_t host) {
  return sample.from == host || sample.to == host;
}

class ProbeLocate : public testing::TestWithParam<std::size_t> {
 protected:
  Suspect only(std::size_t rails, const std::function<bool(const Sample&)>& is_bad) {
    const auto all = samples(GetParam(), rails, is_bad);
    const auto suspects = locate(all, GetParam(), rails);
    EXPECT_EQ(suspects.size(), 1U);
    return suspects.empty() ? Suspect{} : suspects[0];
  }
};

TEST_P(ProbeLocate, NamesAHost) {
  for (const std::size_t rails : {1U, 3U}) {
    const Suspect found = only(rails, [](const Sample& s) { return touches(s, 2); });
    EXPECT_EQ(found.kind, Kind::kHost);
    EXPECT_EQ(found.host, 2U);
  }
}

TEST_P(ProbeLocate, NamesANicOfAHost) {
  const Suspect found = only(3, [](const Sample& s) { return touches(s, 2) && s.rail == 1; });
  EXPECT_EQ(found.kind, Kind::kNic);
  EXPECT_EQ(found.host, 2U);
  EXPECT_EQ(found.rail, 1U);
}

TEST_P(ProbeLocate, NamesARail) {
  const Suspect found = only(3, [](const Sample& s) { return s.rail == 1; });
  EXPECT_EQ(found.kind, Kind::kRail);
  EXPECT_EQ(found.rail, 1U);
}

TEST_P(ProbeLocate, NamesADirectionOfAHost) {
  const Suspect sender = only(1, [](const Sample& s) { return s.from == 1; });
  EXPECT_EQ(sender.kind, Kind::kSends);
  EXPECT_EQ(sender.host, 1U);
  const Suspect receiver = only(2, [](const Sample& s) { return s.to == 0; });
  EXPECT_EQ(receiver.kind, Kind::kReceives);
  EXPECT_EQ(receiver.host, 0U);
  EXPECT_FALSE(receiver.is_one_rail);
  const Suspect nic = only(2, [](const Sample& s) { return s.to == 0 && s.rail == 1; });
  EXPECT_EQ(nic.kind, Kind::kReceives);
  EXPECT_TRUE(nic.is_one_rail);
  EXPECT_EQ(nic.rail, 1U);
}

TEST_P(ProbeLocate, NamesAPath) {
  const Suspect one_way = only(1, [](const Sample& s) { return s.from == 0 && s.to == 1; });
  EXPECT_EQ(one_way.kind, Kind::kPath);
  EXPECT_EQ(one_way.host, 0U);
  EXPECT_EQ(one_way.peer, 1U);
  EXPECT_FALSE(one_way.is_both_ways);
  const Suspect both = only(2, [](const Sample& s) { return touches(s, 0) && touches(s, 1); });
  EXPECT_EQ(both.kind, Kind::kPath);
  EXPECT_TRUE(both.is_both_ways);
  EXPECT_FALSE(both.is_one_rail);
}

TEST_P(ProbeLocate, NamesTheNetworkWhereAllIsBad) {
  EXPECT_EQ(only(2, [](const Sample&) { return true; }).kind, Kind::kAll);
}

INSTANTIATE_TEST_SUITE_P(Hosts, ProbeLocate, testing::Values(3, 4, 7, 16));

TEST(ProbeLocate, GoodMeasurementsHaveNoSuspect) {
  EXPECT_TRUE(locate(samples(5, 2, [](const Sample&) { return false; }), 5, 2).empty());
  EXPECT_TRUE(locate({}, 0, 0).empty());
}

TEST(ProbeLocate, OneGoodPairOfABadHostDoesNotHideIt) {
  const auto all = samples(8, 1, [](const Sample& s) { return touches(s, 5) && !touches(s, 0); });
  const auto suspects = locate(all, 8, 1);
  ASSERT_EQ(suspects.size(), 1U);
  EXPECT_EQ(suspects[0].kind, Kind::kHost);
  EXPECT_EQ(suspects[0].host, 5U);
  EXPECT_EQ(suspects[0].samples.size(), 12U);
}

TEST(ProbeLocate, OneDisturbedMeasurementDoesNotTurnABadHostIntoABadNetwork) {
  for (const std::size_t rails : {1U, 2U}) {
    const auto all = samples(3, rails, [](const Sample& s) {
      return s.rail == 0 && (touches(s, 1) || (s.from == 0 && s.to == 2));
    });
    const auto suspects = locate(all, 3, rails);
    ASSERT_EQ(suspects.size(), 2U);
    EXPECT_EQ(suspects[0].kind, rails == 1 ? Kind::kHost : Kind::kNic);
    EXPECT_EQ(suspects[0].host, 1U);
    EXPECT_EQ(suspects[1].kind, Kind::kPath);
  }
}

TEST(ProbeLocate, TwoFaultsAreTwoSuspects) {
  const auto all =
      samples(8, 2, [](const Sample& s) { return touches(s, 5) || (s.from == 1 && s.rail == 1); });
  const auto suspects = locate(all, 8, 2);
  ASSERT_EQ(suspects.size(), 2U);
  EXPECT_EQ(suspects[0].kind, Kind::kHost);
  EXPECT_EQ(suspects[0].host, 5U);
  EXPECT_EQ(suspects[1].kind, Kind::kSends);
  EXPECT_EQ(suspects[1].host, 1U);
}

TEST(ProbeLocate, OfTwoHostsThePathIsNamed) {
  const auto suspects = locate(samples(2, 2, [](const Sample& s) { return s.rail == 1; }), 2, 2);
  ASSERT_EQ(suspects.size(), 1U);
  EXPECT_EQ(suspects[0].kind, Kind::kPath);
  EXPECT_TRUE(suspects[0].is_both_ways);
  EXPECT_TRUE(suspects[0].is_one_rail);
  EXPECT_EQ(suspects[0].rail, 1U);
}

TEST(ProbeLocate, EachBadSampleBelongsToOneSuspect) {
  const auto all = samples(9, 3, [](const Sample& s) {
    return touches(s, 1) || s.rail == 2 || (s.from == 3 && s.to == 4);
  });
  std::vector<int> seen(all.size());
  for (const Suspect& suspect : locate(all, 9, 3))
    for (const std::size_t i : suspect.samples) ++seen[i];
  for (std::size_t i = 0; i < all.size(); ++i) EXPECT_EQ(seen[i], all[i].is_bad ? 1 : 0) << i;
}

}  // namespace
}  // namespace ztcp::perf::probe
