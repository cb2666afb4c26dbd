// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/session_config.h"

#include <gtest/gtest.h>

namespace ztcp::comms {
namespace {

using config::NicDriver;

TEST(SessionConfig, LanesShareTheLimitsOfTheNic) {
  const config::Fabric fabric;
  const std::uint32_t all = config::connections_of_nic(fabric.tcp, NicDriver::kMemif);
  const msg::SessionSettings one = session_settings(fabric, NicDriver::kMemif, 1);
  EXPECT_EQ(one.max_sessions, all);
  for (const std::size_t lanes : {2U, 3U, 4U, 16U}) {
    const msg::SessionSettings each = session_settings(fabric, NicDriver::kMemif, lanes);
    EXPECT_LE(lanes * each.eager_budget_bytes, one.eager_budget_bytes) << lanes;
    EXPECT_GE(each.eager_budget_bytes / each.eager_shares,
              one.eager_budget_bytes / one.eager_shares * 9 / 10)
        << lanes << ": the allowance of a lane's first session";
    EXPECT_LE(lanes * each.max_sessions, 2 * all + lanes) << lanes;
    EXPECT_GE(lanes * each.max_sessions, 2 * all) << lanes;
  }
}

TEST(SessionConfig, LaneHasRoomFor256SessionsOrAllOfTheNic) {
  config::Fabric fabric;
  fabric.tcp.max_connections = 300;
  EXPECT_EQ(session_settings(fabric, NicDriver::kPci, 4).max_sessions, 256U);
  fabric.tcp.max_connections = 100;
  EXPECT_EQ(session_settings(fabric, NicDriver::kPci, 4).max_sessions, 100U);
}

// An all-to-all of 128 hosts x 8 ranks, with the NIC exposed to NCCL as eight devices.
TEST(SessionConfig, LaneOfKernelSocketsHasRoomForAllOfTheNic) {
  const config::Fabric fabric;
  for (const std::size_t lanes : {1U, 12U})
    EXPECT_GE(session_settings(fabric, NicDriver::kSocket, lanes).max_sessions, 2U * 1016 * 8);
}

}  // namespace
}  // namespace ztcp::comms
