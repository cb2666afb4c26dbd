// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/socket_ifname.h"

#include <string>

#include <gtest/gtest.h>

namespace ztcp {
namespace {

// The interfaces of a host that fit.
std::string fitting(std::string_view value) {
  std::string names;
  for (const char* name : {"lo", "docker0", "eth0", "eth1", "eth10", "ib0"})
    if (fits_socket_ifname(value, name)) names += std::string(names.empty() ? "" : " ") + name;
  return names;
}

TEST(SocketIfname, NamesMatchAsPrefixes) {
  EXPECT_EQ(fitting("eth"), "eth0 eth1 eth10");
  EXPECT_EQ(fitting("eth1"), "eth1 eth10");
  EXPECT_EQ(fitting("ib,eth0"), "eth0 ib0");
  EXPECT_EQ(fitting("eth00"), "");
}

TEST(SocketIfname, AnEqualSignMakesNamesMatchExactly) {
  EXPECT_EQ(fitting("=eth1"), "eth1");
  EXPECT_EQ(fitting("=eth"), "");
  EXPECT_EQ(fitting("=ib0,eth0"), "eth0 ib0");
}

TEST(SocketIfname, ACaretExcludesTheNames) {
  EXPECT_EQ(fitting("^docker,lo"), "eth0 eth1 eth10 ib0");
  EXPECT_EQ(fitting("^=eth1"), "lo docker0 eth0 eth10 ib0");
  EXPECT_EQ(fitting("^eth1"), "lo docker0 eth0 ib0");
}

// NCCL's results, odd as some are.
TEST(SocketIfname, OddValuesAreReadAsNcclDoes) {
  EXPECT_EQ(fitting("eth0:1,ib0:2"), "eth0 ib0");
  EXPECT_EQ(fitting(",,eth0,"), "eth0");
  EXPECT_EQ(fitting("=,"), "lo docker0 eth0 eth1 eth10 ib0");
  EXPECT_EQ(fitting("^,"), "");
  EXPECT_EQ(fitting("=^eth0"), "") << "the other way round it is a name";
  EXPECT_EQ(fitting(" eth0"), "");
  EXPECT_EQ(fitting("x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,eth0"), "eth0");
  EXPECT_EQ(fitting("x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,x,eth0"), "") << "the seventeenth";
  EXPECT_FALSE(says_interfaces(""));
  EXPECT_FALSE(says_interfaces("="));
  EXPECT_TRUE(says_interfaces("lo"));
}

}  // namespace
}  // namespace ztcp
