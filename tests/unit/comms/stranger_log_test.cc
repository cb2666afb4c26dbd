// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/stranger_log.h"

#include <gtest/gtest.h>

namespace ztcp::comms {
namespace {

using namespace std::chrono_literals;

TEST(StrangerLog, WarnsOncePerMinuteWithThePortsToClose) {
  StrangerLog log;
  TimePoint now(1000s);
  EXPECT_TRUE(log.is_due(now));
  CountWatch::Part silent{"rejected_timed_out", 0};
  EXPECT_FALSE(log.check(now, {&silent, 1}, "port 7000 of 10.0.0.1"));
  EXPECT_FALSE(log.is_due(now));
  silent.count = 12;
  now += 1s;
  EXPECT_TRUE(log.is_due(now));
  EXPECT_EQ(
      log.check(now, {&silent, 1}, "port 7000 of 10.0.0.1"),
      "rejected 12 connections without a valid hello in 1 s (12 rejected_timed_out): open port "
      "7000 of 10.0.0.1 to the job's hosts alone (security group); hosts of the job need the "
      "same ztcp and cluster_key");
  silent.count = 24;
  EXPECT_FALSE(log.check(now + 1s, {&silent, 1}, "")) << "once a minute";
}

}  // namespace
}  // namespace ztcp::comms
