// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Checks for NICs of every kind.
#include "config/check/check.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/config/check/checked_machine.h"

namespace ztcp::config {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::SizeIs;
using testing::StartsWith;
using testing::UnorderedElementsAre;

TEST(Check, AGoodMachineHasNoFaults) {
  const CheckedMachine machine;
  EXPECT_THAT(check_host(machine.fabric, machine.live, machine.gpus), IsEmpty());
  std::vector<std::string> names;
  for (const Check& check : run_checks(machine.fabric, machine.live, machine.gpus)) {
    // 3000 pages are 6000 MiB, more than the 5120 of one GPU.
    EXPECT_EQ(check.severity, Severity::kGood) << to_string(check.problem);
    EXPECT_FALSE(check.problem.what.empty());
    names.push_back(check.name);
  }
  EXPECT_THAT(names,
              UnorderedElementsAre("schema", "host", "run_dir", "gpu", "pci", "driver", "vfio",
                                   "mac", "speed", "cloud_mtu", "hugepages", "memlock"));
}

TEST(Check, AnotherSchemaVersionIsAFault) {
  CheckedMachine machine;
  machine.fabric.schema = 2;
  EXPECT_THAT(machine.fault("schema").what, HasSubstr("schema 2, this ztcp reads 1"));
}

TEST(Check, AnotherMachineIdIsAFault) {
  CheckedMachine machine;
  machine.tree.add_file("etc/machine-id", "ffffffffffffffffffffffffffffffff\n");
  EXPECT_THAT(
      machine.fault("host").what,
      HasSubstr("written for host gpu-7 (machine id 0123456789abcdef0123456789abcdef), this "
                "machine id is ffffffffffffffffffffffffffffffff"));
}

TEST(Check, AContainersMachineIdIsNotCompared) {
  CheckedMachine machine;
  machine.tree.add_file("etc/machine-id", "ffffffffffffffffffffffffffffffff\n");
  EXPECT_THAT(machine.fault("host").mend, StartsWith("sudo ztcp_setup"));
  machine.tree.add_file("run/.containerenv", "");
  EXPECT_THAT(machine.of_severity(Severity::kFault), IsEmpty());
}

TEST(Check, AMissingMachineIdIsNotCompared) {
  CheckedMachine machine;
  machine.tree.remove("etc/machine-id");
  EXPECT_THAT(machine.of_severity(Severity::kFault), IsEmpty());
}

TEST(Check, AMissingRunFolderIsAFault) {
  CheckedMachine machine;
  machine.tree.remove("run");
  EXPECT_THAT(machine.fault("run_dir").mend, HasSubstr("sudo ztcp_setup"));
}

TEST(Check, AnUnwritableRunFolderIsAFault) {
  CheckedMachine machine;
  ::chmod(machine.tree.path("run").c_str(), 0755);
  if (::geteuid() != 0) ::chmod(machine.tree.path("run").c_str(), 0555);
  ::chmod(machine.tree.path("dev/vfio/7").c_str(), 0666);
  EXPECT_THAT(as_nobody([&] { return machine.fault("run_dir"); }).what,
              HasSubstr("can't write to it"));
}

TEST(Check, AMissingGpuOfTheConfigIsAFault) {
  CheckedMachine machine;
  machine.nic().gpu_pci = "0000:17:00.0";
  machine.gpus.clear();
  const Problem problem = machine.fault("gpu");
  EXPECT_EQ(problem.where, "0000:17:00.0");
  EXPECT_THAT(problem.what, HasSubstr("not in this machine"));
}

TEST(Check, AGpuWithoutANicIsAFault) {
  CheckedMachine machine;
  machine.gpus = {"0000:00:1f.0"};
  EXPECT_THAT(machine.fault("gpu").what,
              HasSubstr("sees GPU 0000:00:1f.0, the config has NICs for 0000:00:1e.0"));
}

TEST(Check, GpuNumberedAnewIsAWarningWhenUuidsAreKnown) {
  CheckedMachine machine;
  machine.gpus = {"0001:00:00.0"};
  machine.nic().gpu_uuid = "GPU-1";
  EXPECT_THAT(machine.of_severity(Severity::kFault), IsEmpty());
  EXPECT_THAT(machine.of_severity(Severity::kWarning), SizeIs(1));
}

// Write access allows to block every NIC: the folder is opened to a group, not to all users.
TEST(Check, RunFolderOfSoftwareNicsIsNotOpenedToAll) {
  CheckedSoftware machine(NicDriver::kMemif);
  ::chmod(machine.tree.path("run").c_str(), ::geteuid() == 0 ? 0700 : 0500);
  ::chmod(machine.tree.path("sockets").c_str(), 0777);
  const Problem problem = as_nobody([&] { return machine.fault("run_dir"); });
  EXPECT_THAT(problem.mend, HasSubstr("sudo chmod 770 /run"));
}

TEST(Check, AFileInPlaceOfAFolderIsReported) {
  CheckedSoftware machine(NicDriver::kMemif);
  machine.tree.add_file("file", "");
  ::chmod(machine.tree.path("file").c_str(), 0777);
  machine.fabric.run_dir = "/file";
  EXPECT_THAT(machine.fault("run_dir").what, HasSubstr("is not a folder"));
  machine.fabric.run_dir = "/run";
  machine.nic().memif_socket = "/file/a.sock";
  EXPECT_THAT(machine.fault("memif").what, HasSubstr("is not a folder"));
}

TEST(Check, MendsQuoteWordsForTheShell) {
  CheckedSoftware machine(NicDriver::kMemif);
  machine.fabric.run_dir = "/my run";
  EXPECT_THAT(machine.fault("run_dir").mend, HasSubstr("mkdir -p '/my run'"));
}

}  // namespace
}  // namespace ztcp::config
