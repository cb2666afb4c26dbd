// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/comm_settings.h"

#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "tests/support/log_capture.h"

namespace ztcp::comms {
namespace {

using Lines = std::vector<std::string>;

std::optional<std::uint8_t> dscp_for(TrafficClasses& classes, int traffic_class) {
  return classes
      .settings_for({.communicator = 77, .traffic_class = traffic_class}, "ztcp0",
                    /*dscp_of_nic=*/8)
      .dscp;
}

TEST(TrafficClasses, DscpIsTheUpperSixBits) {
  TrafficClasses classes;
  EXPECT_EQ(dscp_for(classes, 0), 0);
  EXPECT_EQ(dscp_for(classes, 184), 46);
  EXPECT_EQ(dscp_for(classes, 187), 46) << "the lower bits are ECN's";
  EXPECT_EQ(dscp_for(classes, 255), 63);
}

TEST(TrafficClasses, ACommunicatorWithoutOneHasTheNics) {
  const test::LogCapture log;
  TrafficClasses classes;
  const CommSettings settings = classes.settings_for({.communicator = 77}, "ztcp0", 8);
  EXPECT_EQ(settings.communicator, 77U);
  EXPECT_FALSE(settings.dscp);
  EXPECT_EQ(log.infos(), Lines());
}

TEST(TrafficClasses, EachIsLoggedOnce) {
  const test::LogCapture log;
  TrafficClasses classes;
  for (int i = 0; i < 3; ++i) {
    dscp_for(classes, 184);
    dscp_for(classes, 104);
  }
  EXPECT_EQ(log.infos(),
            Lines({"ztcp0: packets of a communicator have DSCP 46, by its traffic class 184",
                   "ztcp0: packets of a communicator have DSCP 26, by its traffic class 104"}));
}

TEST(TrafficClasses, AnInvalidOneIsRefusedByName) {
  const test::LogCapture log;
  TrafficClasses classes;
  EXPECT_FALSE(dscp_for(classes, 256));
  EXPECT_FALSE(dscp_for(classes, -2));
  EXPECT_EQ(log.warnings(),
            Lines({"ztcp0: traffic class 256 of a communicator is refused: it is outside 0..255; "
                   "its packets have DSCP 8 by dscp in [nic]; correct trafficClass in the "
                   "application's ncclConfig_t"}));
}

}  // namespace
}  // namespace ztcp::comms
