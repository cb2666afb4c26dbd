// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/connection_limit.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/schema.h"

namespace ztcp::comms {
namespace {

TEST(ConnectionLimit, LineNamesTheConfigFileToEdit) {
  config::Fabric fabric;
  fabric.path = "/etc/ztcp.conf";
  EXPECT_EQ(connection_limit_line("ztcp0", fabric, 8),
            "ztcp0: connection limit reached: 8 of 8 (tcp.max_connections), sends and receives "
            "together: raise max_connections in [tcp] of /etc/ztcp.conf (up to 32768), or let NCCL "
            "open fewer on all hosts (NCCL_NCHANNELS_PER_NET_PEER=1)");
}

// The devices were chosen by NCCL's rules, without a config file.
TEST(ConnectionLimit, LineWithoutAConfigFileNamesZtcpConfig) {
  config::Fabric fabric;
  fabric.chosen_by = "NCCL_SOCKET_IFNAME=eth";
  EXPECT_THAT(connection_limit_line("eth0", fabric, 4096),
              testing::HasSubstr("in [tcp] of a config, which ZTCP_CONFIG names (up to"));
}

TEST(ConnectionLimit, LineNeverAdvisesAValueThatTheConfigRefuses) {
  const config::Key& key = *config::find_key("tcp", "max_connections");
  EXPECT_EQ(key.max, config::kMostConnections);
  EXPECT_THAT(connection_limit_line("eth0", {}, config::kMostConnections - 1),
              testing::HasSubstr("(up to " + std::to_string(key.max) + ")"));
  EXPECT_THAT(connection_limit_line("eth0", {}, config::kMostConnections),
              testing::Not(testing::HasSubstr("raise")));
}

}  // namespace
}  // namespace ztcp::comms
