// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Checks of a NIC on PCI.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/config/check/checked_machine.h"

namespace ztcp::config {
namespace {

using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;

TEST(CheckPci, AMissingPciFunctionIsAFault) {
  CheckedMachine machine;
  machine.nic().pci = "0000:00:06.0";
  const Problem problem = machine.fault("pci");
  EXPECT_EQ(problem.where, "ztcp0");
  EXPECT_THAT(problem.what, HasSubstr("0000:00:06.0, where there is no device"));
}

TEST(CheckPci, APciFunctionThatIsNotANicIsAFault) {
  CheckedMachine machine;
  machine.nic().pci = "0000:00:1e.0";
  EXPECT_THAT(machine.fault("pci").what, HasSubstr("its class is 0x030200"));
}

TEST(CheckPci, AnotherDriverIsAFault) {
  CheckedMachine machine;
  machine.unbind("02:00:00:00:00:05", 9001);
  const Problem problem = machine.fault("driver");
  EXPECT_THAT(problem.what, HasSubstr("0000:00:05.0 is bound to ena, wanted vfio-pci"));
  EXPECT_THAT(problem.mend, HasSubstr("sudo ztcp_setup"));
}

TEST(CheckPci, NoDriverIsAFault) {
  CheckedMachine machine;
  machine.tree.remove(std::string(kNicFolder) + "/driver");
  EXPECT_THAT(machine.fault("driver").what, HasSubstr("bound to no driver"));
}

TEST(CheckPci, AnotherMacIsAFault) {
  CheckedMachine machine;
  machine.unbind("02:00:00:00:00:99", 9001);
  const auto faults = machine.of_severity(Severity::kFault);
  ASSERT_THAT(faults, SizeIs(2));  // One for the driver, too.
  EXPECT_EQ(faults[1].name, "mac");
  EXPECT_THAT(faults[1].problem.what,
              HasSubstr("mac = 02:00:00:00:00:05 in the config, ens5 has 02:00:00:00:00:99"));
}

TEST(CheckPci, AnotherMtuIsAFault) {
  CheckedMachine machine;
  machine.unbind("02:00:00:00:00:05", 1500);
  const auto faults = machine.of_severity(Severity::kFault);
  ASSERT_THAT(faults, SizeIs(2));
  EXPECT_EQ(faults[1].name, "mtu");
  EXPECT_THAT(faults[1].problem.what, HasSubstr("mtu_bytes = 9001 in the config, ens5 has 1500"));
  EXPECT_THAT(faults[1].problem.mend, HasSubstr("mtu_bytes = 1500"));
}

TEST(CheckPci, AVirtioNicIsReadThroughItsOwnDevice) {
  CheckedMachine machine;
  machine.unbind("02:00:00:00:00:05", 9001);
  machine.tree.remove(std::string(kNicFolder) + "/net");
  machine.tree.add(
      "net path=pci0000:00/0000:00:05.0/virtio3 name=ens5 mac=02:00:00:00:00:98 mtu=9001 speed=-1");
  const auto faults = machine.of_severity(Severity::kFault);
  ASSERT_THAT(faults, SizeIs(2));
  EXPECT_THAT(faults[1].problem.what, HasSubstr("ens5 has 02:00:00:00:00:98"));
}

TEST(CheckPci, AMissingVfioGroupIsAFault) {
  CheckedMachine machine;
  machine.tree.remove("dev/vfio/7");
  EXPECT_THAT(machine.fault("vfio").mend, HasSubstr("sudo ztcp_setup"));
}

TEST(CheckPci, AVfioGroupWithoutAccessIsAFault) {
  CheckedMachine machine;
  ::chmod(machine.tree.path("run").c_str(), 0777);
  ::chmod(machine.tree.path("dev/vfio/7").c_str(), ::geteuid() == 0 ? 0600 : 0000);
  const Problem problem = as_nobody([&] { return machine.fault("vfio"); });
  EXPECT_THAT(problem.what, HasSubstr("may not open /dev/vfio/7"));
  EXPECT_THAT(problem.mend, HasSubstr("--group"));
}

TEST(CheckPci, AnotherHostClassIsAFault) {
  CheckedMachine machine;
  machine.fabric.host.host_class = HostClass::kNoIommu;
  EXPECT_THAT(machine.fault("vfio").what,
              HasSubstr("host.class = \"no-iommu\" in the config, the machine is \"iommu\""));
}

TEST(CheckPci, NoIommuNeedsTwoCapabilities) {
  CheckedMachine machine;
  machine.fabric.host.host_class = HostClass::kNoIommu;
  machine.tree.remove("dev/vfio/7");
  machine.tree.add_file("dev/vfio/noiommu-7", "");
  const Problem problem = machine.fault("vfio");
  EXPECT_THAT(problem.what, EndsWith("missing: CAP_SYS_RAWIO, CAP_SYS_ADMIN"));
  EXPECT_THAT(problem.mend, HasSubstr("--user 0 --cap-add SYS_RAWIO --cap-add SYS_ADMIN"));
  machine.tree.add_file("proc/self/status", "CapEff:\t0000000000020000\n");
  EXPECT_THAT(machine.fault("vfio").what, EndsWith("missing: CAP_SYS_ADMIN"));
  machine.tree.add_file("proc/self/status", "CapEff:\t0000000000200000\n");
  EXPECT_THAT(machine.fault("vfio").what, EndsWith("missing: CAP_SYS_RAWIO"));
  machine.tree.add_file("proc/self/status", "CapEff:\t0000000000220000\n");
  EXPECT_THAT(machine.of_severity(Severity::kFault), IsEmpty());
}

TEST(CheckPci, AnUnknownSpeedIsAWarning) {
  CheckedMachine machine;
  machine.nic().speed_mbps = 0;
  const auto warnings = machine.of_severity(Severity::kWarning);
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_EQ(warnings[0].name, "speed");
  EXPECT_THAT(warnings[0].problem.what, HasSubstr("NCCL is told 10000 Mb/s, a guess"));
  EXPECT_THAT(warnings[0].problem.mend, HasSubstr("ztcp_setup --speed MBPS"));
}

TEST(CheckPci, ASpeedThatDiffersFromTheDriversIsAWarning) {
  CheckedMachine machine;
  machine.unbind("02:00:00:00:00:05", 9001, 25000);
  const auto warnings = machine.of_severity(Severity::kWarning);
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_EQ(warnings[0].problem.what, "speed_mbps = 100000 in the config, ens5 says 25000");
  machine.nic().speed_mbps = 25000;
  EXPECT_THAT(machine.of_severity(Severity::kWarning), IsEmpty());
}

TEST(CheckPci, UnequalSpeedsAreAWarning) {
  CheckedMachine machine;
  add_second_nic(machine);
  machine.tree.add("pages node=1 kib=2048 total=4096 free=4096");
  EXPECT_THAT(machine.of_severity(Severity::kWarning), IsEmpty());
  machine.fabric.nics[1].speed_mbps = 25000;
  const auto warnings = machine.of_severity(Severity::kWarning);
  ASSERT_THAT(warnings, SizeIs(1));
  EXPECT_THAT(warnings[0].problem.what, HasSubstr("(ztcp0 100000, ztcp1 25000 Mb/s)"));
}

}  // namespace
}  // namespace ztcp::config
