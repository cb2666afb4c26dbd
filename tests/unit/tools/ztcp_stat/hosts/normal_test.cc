// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/hosts/normal.h"

#include <gtest/gtest.h>

namespace ztcp::stat::hosts {
namespace {

TEST(HostsNormal, AddressesAreReplaced) {
  EXPECT_EQ(without_addresses("listens at 10.0.0.7:7472, as peers expect"),
            "listens at ADDRESS:7472, as peers expect");
  EXPECT_EQ(without_addresses("has 10.66.0.1/24."), "has ADDRESS/24.");
  EXPECT_EQ(without_addresses("[fd00::1]:7471"), "[ADDRESS]:7471");
  EXPECT_EQ(without_addresses("gateway fe80::, via (10.0.0.1)"), "gateway ADDRESS, via (ADDRESS)");
  EXPECT_EQ(without_addresses("MAC 02:5a:00:00:00:01 at 0000:3b:00.0: gone"),
            "MAC MAC at PCI: gone");
}

TEST(HostsNormal, OtherTextsStay) {
  for (const char* text : {"", "MTU 9000", "schema 1", "0.1.0", "2 CPUs (0-1) for 2 NICs", "::",
                           "mesh /tmp/fab/mesh, 1 peers", "a:b", "  two  blanks ", "12:30:15"}) {
    const std::string expected = text == std::string("::") ? "ADDRESS" : text;
    EXPECT_EQ(without_addresses(text), expected);
  }
}

TEST(HostsNormal, APrefixesLengthIsADifference) {
  EXPECT_EQ(without_addresses("10.0.0.1/24"), without_addresses("10.0.0.2/24"));
  EXPECT_NE(without_addresses("10.0.0.1/24"), without_addresses("10.0.0.2/16"));
}

}  // namespace
}  // namespace ztcp::stat::hosts
