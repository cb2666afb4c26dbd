// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/thread_name.h"

#include <gtest/gtest.h>

namespace ztcp::comms {
namespace {

TEST(ThreadName, HasTheNicAndTheSuffix) {
  EXPECT_EQ(thread_name("ztcp0", ""), "ztcp-ztcp0");
  EXPECT_EQ(thread_name("ztcp0", "-3"), "ztcp-ztcp0-3");
  EXPECT_EQ(thread_name("eth0", "-3w", 2), "ztcp-eth0-3w");
}

TEST(ThreadName, KeepsTheEndOfALongNicName) {
  EXPECT_EQ(thread_name("enp0s31f6np10", ""), "z-enp0s31f6np10");
  EXPECT_EQ(thread_name("enp0s31f6np10", "-7"), "z-p0s31f6np10-7");
  EXPECT_EQ(thread_name("ztcp0", "-7w", 2), "ztcp-ztcp0-7w");
  EXPECT_EQ(thread_name("ztcp12", "-7w", 2), "z-ztcp12-7w");
  EXPECT_EQ(thread_name("enp0s31f6np10", "-7w", 2), "z-31f6np10-7w");
}

}  // namespace
}  // namespace ztcp::comms
