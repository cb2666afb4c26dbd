// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Checks of a tun/tap interface.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/config/check/checked_machine.h"

namespace ztcp::config {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

TEST(CheckTap, AGoodTapHasNoFaults) {
  const CheckedSoftware machine(NicDriver::kTap);
  EXPECT_THAT(machine.of_severity(Severity::kFault), IsEmpty());
}

TEST(CheckTap, AMissingInterfaceIsAFault) {
  CheckedSoftware machine(NicDriver::kTap);
  machine.nic().tap_interface = "tap1";
  EXPECT_THAT(machine.fault("tap").mend, HasSubstr("ip tuntap add dev tap1 mode tap"));
}

TEST(CheckTap, ACloneDeviceWithoutAccessIsAFault) {
  CheckedSoftware machine(NicDriver::kTap);
  ::chmod(machine.tree.path("dev/net/tun").c_str(), ::geteuid() == 0 ? 0600 : 0000);
  EXPECT_THAT(as_nobody([&] { return machine.fault("tap"); }).what, HasSubstr("may not open"));
}

TEST(CheckTap, AnotherMtuIsAFault) {
  CheckedSoftware machine(NicDriver::kTap);
  machine.nic().mtu_bytes = 1500;
  EXPECT_THAT(machine.fault("mtu").what,
              HasSubstr("mtu_bytes = 1500 in the config, tap0 has 9001"));
}

}  // namespace
}  // namespace ztcp::config
