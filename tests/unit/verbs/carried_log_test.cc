// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/carried_log.h"

#include <gtest/gtest.h>

namespace ztcp::verbs {
namespace {

using namespace std::chrono_literals;

constexpr CarriedLog::Clock::time_point kStart{};

TEST(CarriedLog, TellsWhenTheLastConnectionIsClosed) {
  CarriedLog log("bond0", {"soft0 port 1", "lo"});
  log.opened();
  log.opened();
  EXPECT_FALSE(log.closed({.messages = 2, .bytes = {100, 200}}, true, kStart));
  EXPECT_EQ(log.closed({.messages = 3, .bytes = {7, 0}}, false, kStart).value_or(""),
            "bond0: no connection is left; so far it sent 2 messages (300 bytes), received 3 "
            "messages (7 bytes); soft0 port 1 sent 100 bytes, received 7; lo sent 200 bytes, "
            "received 0");
  EXPECT_FALSE(log.rest()) << "all is told";
}

TEST(CarriedLog, TellsOfOneRailWithoutNamingIt) {
  CarriedLog log("ib0", {"mlx5_0 port 1"});
  log.opened();
  EXPECT_EQ(log.closed({.messages = 1, .bytes = {8}}, true, kStart).value_or(""),
            "ib0: no connection is left; so far it sent 1 message (8 bytes), received 0 messages "
            "(0 bytes)");
}

TEST(CarriedLog, TellsOnceAMinuteAndTheRestAtTheEnd) {
  CarriedLog log("bond0", {"a", "b"});
  log.opened();
  EXPECT_TRUE(log.closed({}, true, kStart));
  log.opened();
  EXPECT_FALSE(log.closed({.messages = 1, .bytes = {5, 0}}, true, kStart + 1s));
  EXPECT_EQ(log.rest().value_or("").substr(0, 43), "bond0: in all it sent 1 message (5 bytes), ");
  EXPECT_FALSE(log.rest());
  log.opened();
  EXPECT_TRUE(log.closed({}, true, kStart + 61s));
}

}  // namespace
}  // namespace ztcp::verbs
