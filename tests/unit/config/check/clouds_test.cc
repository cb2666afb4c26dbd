// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <string>
#include <string_view>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/config/check/checked_machine.h"
#include "tests/unit/config/check/verbs_host.h"

namespace ztcp::config {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST_F(CheckVerbs, ErdmaWithAnMtuThatBreaksLl128IsAWarning) {
  const auto is_told = [&] {
    for (const Check& check : run_checks(fabric_, machine_, {}, {}, addresses_))
      if (check.name == "rdma_cloud") return true;
    return false;
  };
  EXPECT_FALSE(is_told()) << "mlx5_core is no trap";
  tree_.remove("sys/class/infiniband/mlx5_0/device");
  tree_.add("link path=sys/class/infiniband/mlx5_0/device/driver to=../../bus/pci/drivers/erdma\n");
  tree_.add_file("sys/class/net/eth1/mtu", "1500\n");
  const Problem said = warning("rdma_cloud");
  EXPECT_THAT(said.what, HasSubstr("mlx5_0 is eRDMA, and eth1 has an MTU of 1500"));
  EXPECT_THAT(said.mend, StartsWith("sudo ip link set dev eth1 mtu 8500"));
  for (const char* const mtu : {"8500\n", "1400\n"}) {
    tree_.add_file("sys/class/net/eth1/mtu", mtu);
    EXPECT_THAT(good("rdma_cloud"), HasSubstr("is eRDMA"));
  }
}

// --- NICs of userspace TCP -----------------------------------------------------------------------

constexpr const char* kNicDevice = "sys/devices/pci0000:00/0000:00:05.0/device";
constexpr const char* kNicVendor = "sys/devices/pci0000:00/0000:00:05.0/vendor";
constexpr const char* kGpuDevice = "sys/devices/pci0000:00/0000:00:1e.0/device";

Check said(const CheckedMachine& machine, const std::string& name) {
  for (const Check& check : run_checks(machine.fabric, machine.live, machine.gpus))
    if (check.name == name) return check;
  return {};
}

TEST(CheckCloud, AnEnaNicWithTheMtuOfItsCloudIsGood) {
  const CheckedMachine machine;
  EXPECT_EQ(said(machine, "cloud_mtu").severity, Severity::kGood);
  EXPECT_EQ(said(machine, "cloud_mtu").problem.what, "an MTU of 9001 on ENA");
  EXPECT_EQ(said(machine, "cloud_headers").name, "");
}

TEST(CheckCloud, AnMtuThatTheCloudDoesNotCarryIsAWarning) {
  CheckedMachine machine;
  machine.nic().mtu_bytes = 9100;
  const Check over = said(machine, "cloud_mtu");
  EXPECT_EQ(over.severity, Severity::kWarning);
  EXPECT_THAT(over.problem.what,
              HasSubstr("an MTU of 9100 on ENA: the network of AWS carries 9001"));
  EXPECT_THAT(over.problem.mend, StartsWith("mtu_bytes = 9001 in /etc/ztcp.conf"));
}

TEST(CheckCloud, APlainMtuWhereTheCloudHasJumboFramesIsAWarning) {
  CheckedMachine machine;
  machine.nic().mtu_bytes = 1500;
  EXPECT_EQ(said(machine, "cloud_mtu").severity, Severity::kWarning);
  machine.tree.add_file(kNicVendor, "0x8086\n");
  EXPECT_EQ(said(machine, "cloud_mtu").name, "") << "no cloud's NIC";
}

TEST(CheckCloud, Ipv6OverEnaIsAWarning) {
  CheckedMachine machine;
  machine.nic().address = *parse_ip_prefix("fd00::5/64");
  const Check check = said(machine, "cloud_headers");
  EXPECT_EQ(check.severity, Severity::kWarning);
  EXPECT_THAT(check.problem.what, HasSubstr("ENA takes 96 bytes of headers"));
}

TEST(CheckCloud, AQueueFormatThatTheDriverLacksIsAWarning) {
  CheckedMachine machine;
  machine.tree.add_file(kNicVendor, "0x1ae0\n");
  machine.tree.add_file(kNicDevice, "0x0042\n");
  for (const char* const known : {"0x1eb8\n", "0x20b2\n", "0x27b8\n"}) {  // T4, A100, L4.
    machine.tree.add_file(kGpuDevice, known);
    EXPECT_EQ(said(machine, "cloud_queues").severity, Severity::kGood) << known;
  }
  machine.tree.add_file(kGpuDevice, "0x2330\n");  // H100.
  const Check check = said(machine, "cloud_queues");
  if (std::string_view(ZTCP_DPDK_VERSION) >= "23.07") {
    EXPECT_EQ(check.severity, Severity::kGood);
  } else {
    EXPECT_EQ(check.severity, Severity::kWarning);
    EXPECT_THAT(check.problem.what, HasSubstr("such as 0000:00:1e.0, have DQO"));
  }
}

TEST(CheckCloud, ANicThatDoesNotTellItsSpreadIsReported) {
  CheckedMachine machine;
  machine.tree.add_file(kNicVendor, "0x1af4\n");
  machine.tree.add_file(kNicDevice, "0x1041\n");
  EXPECT_EQ(said(machine, "cloud_spread").name, "") << "one queue needs no spread";
  machine.nic().queues = kAutoQueues;
  EXPECT_THAT(said(machine, "cloud_spread").problem.what, StartsWith("virtio-net does not tell"));
}

// --- NICs of the kernel --------------------------------------------------------------------------

// eth0 is a netvsc interface; `vf` is the VF below it.
struct AzureHost : CheckedMachine {
  explicit AzureHost(const std::string& vf) {
    fabric.hugepages.page_kib = 0;
    nic().driver = NicDriver::kSocket;
    nic().interface = "eth0";
    nic().pci.clear();
    tree.add(
        "link path=sys/class/net/eth0/device/driver to=../../../bus/vmbus/drivers/hv_netvsc\n"
        "file path=sys/class/net/eth0/mtu text=1500\n");
    if (vf.empty()) return;
    tree.add("link path=sys/class/net/eth0/lower_" + vf + " to=../" + vf +
             "\nlink path=sys/class/net/" + vf + "/master to=../eth0\n");
  }
  Check vf_check() {
    for (const Check& check :
         run_checks(fabric, live, gpus, {},
                    {{.interface = nic().interface, .prefix = nic().address, .is_up = true}}))
      if (check.name == "cloud_vf") return check;
    return {};
  }
};

TEST(CheckCloud, NetvscWithItsVfIsGood) {
  const Check check = AzureHost("enP1s1").vf_check();
  EXPECT_EQ(check.severity, Severity::kGood);
  EXPECT_EQ(check.problem.what, "netvsc eth0 with its VF enP1s1");
}

TEST(CheckCloud, NetvscWithoutAVfIsAWarning) {
  const Check check = AzureHost("").vf_check();
  EXPECT_EQ(check.severity, Severity::kWarning);
  EXPECT_THAT(check.problem.what, HasSubstr("netvsc eth0 has no VF now"));
}

TEST(CheckCloud, AfXdpOverNetvscIsRefused) {
  AzureHost host("enP1s1");
  host.nic().driver = NicDriver::kXdp;
  const Check check = host.vf_check();
  EXPECT_EQ(check.severity, Severity::kFault);
  EXPECT_THAT(check.problem.what, HasSubstr("eth0 is netvsc, whose AF_XDP sockets lose"));
  EXPECT_THAT(check.problem.mend, StartsWith("driver = \"socket\""));
}

TEST(CheckCloud, TheVfOfNetvscIsNoInterfaceForAConfig) {
  AzureHost host("enP1s1");
  host.nic().interface = "enP1s1";
  const Check check = host.vf_check();
  EXPECT_EQ(check.severity, Severity::kWarning);
  EXPECT_THAT(check.problem.what, HasSubstr("enP1s1 is the VF of eth0"));
  EXPECT_THAT(check.problem.mend, StartsWith("interface = \"eth0\""));
}

}  // namespace
}  // namespace ztcp::config
