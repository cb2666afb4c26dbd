// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/machine/port_set.h"

#include <gtest/gtest.h>

#include "config/machine/live_machine.h"
#include "tests/support/tree.h"

namespace ztcp::config {
namespace {

TEST(PortSet, IsWrittenAsTheKernelWritesIt) {
  for (const char* text : {"", "8080", "8080,61000-65535", "1-2,4,65535"})
    EXPECT_EQ(to_text(parse_ports(text)), text);
  EXPECT_EQ(to_text(parse_ports("7-6,x,70000,5-99999,3,4")), "3-65535");
}

TEST(PortSet, EphemeralPortsAreTheRangeWithoutTheReservedOnes) {
  test::Tree tree{
      "file path=proc/sys/net/ipv4/ip_local_port_range text=100\\t110\n"
      "file path=proc/sys/net/ipv4/ip_local_reserved_ports text=102-103,200\n"};
  LiveMachine machine{tree.root()};
  EXPECT_EQ(to_text(ephemeral_ports(machine)), "100-101,104-110");
  LiveMachine other{tree.root() + "/none"};
  EXPECT_TRUE(ephemeral_ports(other).none());
}

}  // namespace
}  // namespace ztcp::config
