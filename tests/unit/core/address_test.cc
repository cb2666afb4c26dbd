// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/core/address.h"

#include <gtest/gtest.h>

namespace ztcp {
namespace {

TEST(Address, TextSurvivesTheRoundTrip) {
  EXPECT_EQ(to_string(*parse_mac("52:54:00:77:01:0A")), "52:54:00:77:01:0a");
  EXPECT_EQ(to_string(*parse_ipv4("10.77.1.255")), "10.77.1.255");
  EXPECT_EQ(to_string(*parse_ipv4_prefix("10.77.1.10/24")), "10.77.1.10/24");
}

TEST(Address, PrefixKnowsItsNeighbours) {
  const Ipv4Prefix prefix = *parse_ipv4_prefix("10.77.1.10/24");
  EXPECT_TRUE(prefix.contains(*parse_ipv4("10.77.1.200")));
  EXPECT_FALSE(prefix.contains(*parse_ipv4("10.77.2.10")));
  EXPECT_TRUE(parse_ipv4_prefix("0.0.0.0/0")->contains(*parse_ipv4("8.8.8.8")));
}

class Rejected : public testing::TestWithParam<const char*> {};

TEST_P(Rejected, IsNoAddressOfAnyKind) {
  EXPECT_FALSE(parse_mac(GetParam()));
  EXPECT_FALSE(parse_ipv4(GetParam()));
  EXPECT_FALSE(parse_ipv4_prefix(GetParam()));
}

INSTANTIATE_TEST_SUITE_P(Texts, Rejected,
                         testing::Values("", "10.0.0", "10.0.0.256", "10.0.0.1 ", "010.0.0.1",
                                         "10.0.0.1/33", "10.0.0.1/", "52:54:00:77:01",
                                         "52:54:00:77:01:0g", "52-54-00-77-01-0a", "-1.0.0.1"));

}  // namespace
}  // namespace ztcp
