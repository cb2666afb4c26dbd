// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Checks of an interface that DPDK's mlx5 driver shares with the kernel.
#include <algorithm>
#include <string>

#include <gmock/gmock.h>

#include "tests/unit/config/check/past_kernel_host.h"

namespace ztcp::config {
namespace {

using testing::HasSubstr;

struct Mlx5Host : test::PastKernelHost {
  Mlx5Host()
      : PastKernelHost(
            NicDriver::kMlx5,
            "link path=sys/class/net/eth1/device/driver to=../../../../bus/pci/drivers/mlx5_core\n"
            "dir path=sys/class/net/eth1/device/infiniband/mlx5_0\n"
            "dir path=sys/class/infiniband_verbs/uverbs3\n"
            "file path=sys/class/infiniband_verbs/uverbs3/ibdev text=mlx5_0\n"
            "file path=dev/infiniband/uverbs3 text=\n"
            "file path=proc/sys/kernel/osrelease text=6.1.0-18-amd64\n") {
    fabric.hugepages = {2048, 512, 0};
  }
};

TEST(CheckMlx5, AGoodNicIsShown) {
  Mlx5Host host;
  EXPECT_EQ(host.problem("mlx5", Severity::kGood).what, "eth1, MTU 9000");
  EXPECT_EQ(host.problem("mlx5_access", Severity::kGood).what,
            "/dev/infiniband/uverbs3 may be opened");
  EXPECT_THAT(host.problem("ports", Severity::kGood).what, HasSubstr("61000-65535 and 7471"));
  host.problem("rights", Severity::kGood);
  EXPECT_EQ(host.said("mtu").name, "") << "a frame of the NIC is one buffer on any kernel";
}

TEST(CheckMlx5, ANicOfAnotherDriverIsAFault) {
  Mlx5Host host;
  host.tree.add("link path=sys/class/net/eth1/device/driver to=../../../../bus/pci/drivers/ice");
  for (const Check& check : run_checks(host.fabric, host.machine, {}, {}, host.addresses, {}))
    if (check.severity == Severity::kFault && check.name == "mlx5") {
      EXPECT_EQ(check.problem.what,
                "eth1 has the kernel driver ice, and driver = \"mlx5\" is for NICs of mlx5_core");
      EXPECT_EQ(check.problem.mend, "write driver = \"xdp\" in /etc/ztcp.conf");
      return;
    }
  FAIL() << "no fault";
}

TEST(CheckMlx5, ANicWithoutItsRdmaDeviceOrItsFileIsAFault) {
  Mlx5Host host;
  host.tree.remove("dev/infiniband/uverbs3");
  EXPECT_THAT(host.problem("mlx5_access", Severity::kFault).mend, HasSubstr("--device /dev/infin"));
  host.tree.remove("sys/class/infiniband_verbs/uverbs3");
  EXPECT_EQ(host.problem("mlx5_access", Severity::kFault).mend,
            "sudo modprobe -a mlx5_ib ib_uverbs");
}

TEST(CheckMlx5, AProcessWithoutTheRightIsTold) {
  Mlx5Host host;
  host.tree.add_file("proc/self/status", "Name:\tx\nCapEff:\t0000000000000400\n");
  const Problem lacking = host.problem("rights", Severity::kWarning);
  EXPECT_THAT(lacking.what, HasSubstr("lacks CAP_NET_RAW"));
  EXPECT_THAT(lacking.mend, HasSubstr("--cap-add NET_RAW"));
}

TEST(CheckMlx5, AnOldKernelIsAFault) {
  Mlx5Host host;
  host.tree.add_file("proc/sys/kernel/osrelease", "5.4.0-150-generic\n");
  const auto checks = run_checks(host.fabric, host.machine, {}, {}, host.addresses, {});
  EXPECT_TRUE(std::any_of(checks.begin(), checks.end(), [](const Check& check) {
    return check.name == "mlx5" && check.severity == Severity::kFault &&
           check.problem.mend.starts_with("Linux 5.13 or newer");
  }));
}

TEST(CheckMlx5, AVlanIsAFault) {
  Mlx5Host host;
  host.tree.add_file("sys/class/net/eth1/uevent", "DEVTYPE=vlan\nINTERFACE=eth1\n");
  EXPECT_EQ(host.problem("mlx5", Severity::kFault).what,
            "eth1 is a VLAN: mlx5 works on the NICs below it");
}

TEST(CheckMlx5, HugepagesAndLockedMemoryAreThoseOfADpdkPort) {
  Mlx5Host host;
  host.tree.add_file("proc/self/limits",
                     "Max locked memory         8388608              8388608              bytes\n");
  host.tree.add_file("proc/self/status", "Name:\tx\nCapEff:\t0000000000002000\n");
  EXPECT_THAT(host.problem("memlock", Severity::kFault).what, HasSubstr("8192 KiB"));
  EXPECT_EQ(host.problem("hugepages", Severity::kFault).mend.empty(), false);
}

}  // namespace
}  // namespace ztcp::config
