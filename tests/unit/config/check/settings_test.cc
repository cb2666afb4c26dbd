// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Settings that are seldom intended.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/config/check/checked_machine.h"

namespace ztcp::config {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

Problem only_warning(const CheckedMachine& machine, const std::string& name) {
  const auto warnings = machine.of_severity(Severity::kWarning);
  EXPECT_THAT(warnings, SizeIs(1)) << name;
  EXPECT_THAT(machine.of_severity(Severity::kFault), IsEmpty()) << "the plugin takes it";
  if (warnings.size() != 1) return {};
  EXPECT_EQ(warnings[0].name, name);
  EXPECT_FALSE(warnings[0].problem.mend.empty());
  return warnings[0].problem;
}

TEST(CheckSettings, ASpeedGivenInGigabitsIsAWarning) {
  CheckedMachine machine;
  machine.nic().speed_mbps = 100;
  const Problem problem = only_warning(machine, "speed");
  EXPECT_EQ(problem.where, "ztcp0");
  EXPECT_THAT(problem.mend, HasSubstr("for 100 Gb/s write speed_mbps = 100000"));
  machine.nic().speed_mbps = 1000;
  EXPECT_THAT(machine.of_severity(Severity::kWarning), IsEmpty());
}

TEST(CheckSettings, AMissingWatchInterfaceIsAWarning) {
  CheckedMachine machine;
  machine.fabric.messages.watch_interface = "ens9";
  EXPECT_THAT(only_warning(machine, "watch").what, HasSubstr("there is no interface ens9"));
  machine.tree.add_file("sys/class/net/ens9/mtu", "1500\n");
  EXPECT_THAT(machine.of_severity(Severity::kWarning), IsEmpty());
  machine.fabric.messages.watch_interface = "off";
  EXPECT_THAT(machine.of_severity(Severity::kWarning), IsEmpty());
}

TEST(CheckSettings, AUserTimeoutBelowTheKeepaliveIsAWarning) {
  CheckedMachine machine;
  machine.fabric.tcp.user_timeout_ms = 200;
  const Problem problem = only_warning(machine, "timeouts");
  EXPECT_THAT(problem.what, HasSubstr("200 ms, below tcp.keepalive_idle_ms = 3000"));
  EXPECT_THAT(problem.mend, HasSubstr("user_timeout_ms = 7500"));
}

}  // namespace
}  // namespace ztcp::config
