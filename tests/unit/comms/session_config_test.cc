// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/session_config.h"

#include <gtest/gtest.h>

namespace ztcp::comms {
namespace {

TEST(SessionConfig, QueuesShareWhatANicMayTake) {
  const config::Fabric fabric;
  const msg::SessionSettings one = session_settings(fabric, 1);
  EXPECT_EQ(one.max_sessions, fabric.tcp.max_connections);
  for (const std::size_t queues : {2U, 3U, 4U, 16U}) {
    const msg::SessionSettings each = session_settings(fabric, queues);
    EXPECT_LE(queues * each.eager_budget_bytes, one.eager_budget_bytes) << queues;
    EXPECT_GE(each.eager_budget_bytes / each.eager_shares,
              one.eager_budget_bytes / one.eager_shares * 9 / 10)
        << queues << ": what the first of a queue is allowed";
    EXPECT_LE(queues * each.max_sessions, 2 * fabric.tcp.max_connections + queues) << queues;
    EXPECT_GE(queues * each.max_sessions, 2 * fabric.tcp.max_connections) << queues;
  }
}

TEST(SessionConfig, FewMayAllComeToOneQueue) {
  config::Fabric fabric;
  fabric.tcp.max_connections = 300;
  EXPECT_EQ(session_settings(fabric, 4).max_sessions, 256U);
  fabric.tcp.max_connections = 100;
  EXPECT_EQ(session_settings(fabric, 4).max_sessions, 100U);
}

}  // namespace
}  // namespace ztcp::comms
