// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/full.h"

#include <gtest/gtest.h>

namespace ztcp::comms {
namespace {

TEST(Full, NamesTheFileToMend) {
  config::Fabric fabric;
  fabric.path = "/etc/ztcp.conf";
  fabric.tcp.max_connections = 8;
  EXPECT_EQ(
      full_line("ztcp0", fabric),
      "ztcp0: every connection is taken that max_connections = 8 allows this device, sends and "
      "receives together: raise it in [tcp] of /etc/ztcp.conf (up to 4096), or let NCCL open "
      "fewer (NCCL_NCHANNELS_PER_NET_PEER=1)");
}

// NICs by NCCL's rules, and nothing was read.
TEST(Full, WithoutAFileSaysHowToHaveOne) {
  config::Fabric fabric;
  fabric.chosen_by = "NCCL_SOCKET_IFNAME=eth";
  const std::string line = full_line("eth0", fabric);
  EXPECT_NE(line.find("in [tcp] of a config, which ZTCP_CONFIG names (up to"), std::string::npos)
      << line;
}

}  // namespace
}  // namespace ztcp::comms
