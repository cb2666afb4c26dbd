// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/why/case.h"

#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_stat/looks.h"

namespace ztcp::stat {
namespace {

TEST(Case, AddressWithoutItsPort) {
  EXPECT_EQ(without_port("10.0.0.7:4242"), "10.0.0.7");
  EXPECT_EQ(without_port("[fe80::1]:4242"), "fe80::1");
  EXPECT_EQ(without_port("fe80::1"), "fe80::1");
  EXPECT_EQ(without_port("10.0.0.7"), "10.0.0.7");
  EXPECT_EQ(without_port("["), "");
  EXPECT_EQ(without_port(""), "");
}

TEST(Case, NamesOfPeers) {
  stats::Connection connection;
  EXPECT_EQ(peer_name(connection), "an unknown host");
  connection.peer = "10.0.0.7:4242";
  EXPECT_EQ(peer_name(connection), "10.0.0.7");
  connection.peer_host = "gpu-07";
  EXPECT_EQ(peer_name(connection), "gpu-07 (10.0.0.7)");
}

TEST(Case, NamesOfProcesses) {
  stats::Process process;
  process.pid = 7;
  EXPECT_EQ(process_name(process), "process 7");
  process.command = "python3";
  process.rank = 1;
  EXPECT_EQ(process_name(process), "process 7 (rank 1, python3)");
}

TEST(Case, Median) {
  EXPECT_EQ(median({}), 0);
  EXPECT_EQ(median({5, 1, 9}), 5);
}

}  // namespace
}  // namespace ztcp::stat
