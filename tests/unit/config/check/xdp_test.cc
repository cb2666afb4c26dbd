// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Checks of an interface for AF_XDP, and of its ports.
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/config/check/past_kernel_host.h"

namespace ztcp::config {
namespace {

using testing::HasSubstr;

struct XdpHost : test::PastKernelHost {
  XdpHost() : PastKernelHost(NicDriver::kXdp) {}

  static std::string pinned(const char* file) { return std::string("run/ztcp-bpf/eth1/") + file; }
  // As set-up leaves it.
  void pin() {
    for (const char* file : {"link", "program", "sockets", "steering"})
      tree.add_file(pinned(file), "");
  }
};

TEST(CheckXdp, AGoodInterfaceIsShown) {
  XdpHost host;
  EXPECT_THAT(host.problem("xdp", Severity::kGood).what, HasSubstr("eth1, MTU 9000"));
  EXPECT_THAT(host.problem("ports", Severity::kGood).what, HasSubstr("61000-65535 and 7471"));
  host.problem("rights", Severity::kGood);
}

TEST(CheckXdp, ModeAndQueuesAreShown) {
  XdpHost host;
  host.xdp["eth1"].mode = "4 queues, native mode, copy mode (veth has no zero copy)";
  EXPECT_EQ(host.problem("xdp", Severity::kGood).what,
            "eth1, MTU 9000, 4 queues, native mode, copy mode (veth has no zero copy)");
}

TEST(CheckXdp, AnotherProgramIsAFault) {
  XdpHost host;
  host.xdp["eth1"].obstacle = "has the XDP program cil_xdp (id 7) already";
  EXPECT_THAT(host.problem("xdp", Severity::kFault).what, HasSubstr("eth1 has the XDP program"));
}

TEST(CheckXdp, TheProgramOfARunningJobIsNoFault) {
  XdpHost host;
  host.xdp["eth1"] = {.obstacle = "has the XDP program ztcp_xdp (id 7) already",
                      .mode = "1 queue, native mode",
                      .is_in_use = true};
  EXPECT_EQ(
      host.problem("xdp", Severity::kGood).what,
      "eth1, MTU 9000, 1 queue, native mode; a running process of ztcp has its program there");
}

TEST(CheckXdp, AnOldKernelCarriesNoFrameOfSeveralBuffers) {
  XdpHost host;
  host.tree.add_file("proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
  EXPECT_THAT(host.problem("mtu", Severity::kFault).mend, HasSubstr("mtu_bytes = 3822 or less"));
  host.tree.add_file("proc/sys/kernel/osrelease", "6.12.5\n");
  EXPECT_EQ(host.said("mtu").name, "");
  host.tree.add_file("proc/sys/kernel/osrelease", "6.1.0-18-amd64\n");
  host.nic().mtu_bytes = 3822;
  EXPECT_EQ(host.said("mtu").name, "");
}

TEST(CheckXdp, LockedMemoryOfAllQueuesIsCompared) {
  XdpHost host;
  for (const char* queue : {"rx-0", "rx-1", "rx-2", "rx-3", "tx-0"})
    host.tree.add(std::string("dir path=sys/class/net/eth1/queues/") + queue);
  host.tree.add_file("proc/self/limits",
                     "Max locked memory         8388608              8388608              bytes\n");
  EXPECT_THAT(host.problem("memlock", Severity::kGood).what, HasSubstr("CAP_IPC_LOCK"));
  host.tree.add_file("proc/self/status", "Name:\tx\nCapEff:\t0000000000002000\n");
  EXPECT_EQ(host.problem("memlock", Severity::kFault).what,
            "max locked memory is 8192 KiB, eth1 needs 69632 KiB for 4 queues");
  host.nic().queues = 4;  // Lanes, each with frames to send.
  EXPECT_EQ(host.problem("memlock", Severity::kFault).what,
            "max locked memory is 8192 KiB, eth1 needs 81920 KiB for 4 queues");
  host.tree.add_file("proc/self/limits",
                     "Max locked memory         unlimited            unlimited            bytes\n");
  host.problem("memlock", Severity::kGood);
}

TEST(CheckXdp, ProcessesNeedAQueueEachAndAPinnedProgram) {
  XdpHost host;
  EXPECT_EQ(host.said("processes").name, "") << "one process";
  host.nic().processes = 2;
  for (const char* queue : {"rx-0", "rx-1", "rx-2", "rx-3"})
    host.tree.add(std::string("dir path=sys/class/net/eth1/queues/") + queue);
  EXPECT_THAT(host.problem("processes", Severity::kFault).what,
              HasSubstr("needs an XDP program that set-up pinned"));
  host.tree.add("file path=run/ztcp-bpf/eth1/sockets text=");
  EXPECT_THAT(host.problem("processes", Severity::kFault).what,
              HasSubstr("needs an XDP program that set-up pinned"))
      << "left behind by a program that is off";
  host.pin();
  EXPECT_EQ(host.problem("processes", Severity::kGood).what,
            "2 processes share eth1, slots 0 to 1: slot N has the queues N, N + 2 and so on of 4, "
            "and port 7471 + N");
  EXPECT_THAT(host.problem("ports", Severity::kGood).what, HasSubstr("61000-65535 and 7471-7472"));
  host.tree.add_file("proc/self/limits",
                     "Max locked memory         8388608              8388608              bytes\n");
  EXPECT_THAT(host.problem("memlock", Severity::kGood).what, HasSubstr("36864 KiB for 2 queues"));
  host.nic().processes = 8;
  const Problem problem = host.problem("processes", Severity::kFault);
  EXPECT_EQ(problem.what, "eth1 has 4 receive queues, and processes = 8 share it");
  EXPECT_THAT(problem.mend, HasSubstr("sudo ethtool -L eth1 combined 8"));
}

TEST(CheckXdp, AMissingInterfaceIsAFault) {
  XdpHost host;
  host.nic().interface = "eth7";
  EXPECT_THAT(host.problem("xdp", Severity::kFault).what,
              HasSubstr("\"eth7\" is not an interface"));
}

TEST(CheckXdp, InterfacesAboveOthersAreFaults) {
  const std::pair<const char*, const char*> rows[] = {
      {"file path=sys/class/net/eth1/bonding/mode text=active-backup", "eth1 is a bond"},
      {"file path=sys/class/net/eth1/bridge/bridge_id text=8000.0", "eth1 is a bridge"},
      {"file path=sys/class/net/eth1/uevent text=DEVTYPE=vlan", "eth1 is a VLAN"}};
  for (const auto& [entry, said] : rows) {
    XdpHost host;
    host.tree.remove("sys/class/net/eth1/uevent");
    host.tree.add(entry);
    const Problem problem = host.problem("xdp", Severity::kFault);
    EXPECT_THAT(problem.what, HasSubstr(said));
    EXPECT_THAT(problem.mend, HasSubstr("driver = \"socket\""));
  }
}

TEST(CheckXdp, APartOfABridgeIsAFault) {
  XdpHost host;
  host.tree.add("file path=sys/class/net/br0/bridge/bridge_id text=8000.0");
  host.tree.add("link path=sys/class/net/eth1/master to=../br0");
  EXPECT_EQ(host.problem("xdp", Severity::kFault).what,
            "eth1 belongs to br0, which has the address and receives its frames");
}

TEST(CheckXdp, AnAddressThatTheKernelLacksIsAFault) {
  XdpHost host;
  host.nic().address = *parse_ip_prefix("10.0.0.6/24");
  EXPECT_THAT(host.problem("xdp", Severity::kFault).what,
              HasSubstr("eth1 has no address 10.0.0.6"));
}

TEST(CheckXdp, AnInterfaceThatCarriesLessIsAFault) {
  XdpHost host;
  host.tree.add_file("sys/class/net/eth1/mtu", "1500\n");
  const Problem problem = host.problem("mtu", Severity::kFault);
  EXPECT_THAT(problem.what, HasSubstr("mtu_bytes = 9000 in the config, eth1 has 1500"));
  EXPECT_EQ(problem.mend, "sudo ip link set dev eth1 mtu 9000");
}

TEST(CheckXdp, PortsThatTheKernelGivesToOthersAreAFault) {
  XdpHost host;
  host.sysctl("ip_local_port_range", "32768\t65535");
  EXPECT_THAT(host.problem("ports", Severity::kFault).mend,
              HasSubstr("ip_local_reserved_ports=61000-65535,7471"));
  host.sysctl("ip_local_reserved_ports", "8080,61000-65534");
  EXPECT_THAT(host.problem("ports", Severity::kFault).mend,
              HasSubstr("ip_local_reserved_ports=8080,61000-65534,61000-65535,7471"));
  host.sysctl("ip_local_reserved_ports", "8080,61000-65535");
  host.problem("ports", Severity::kGood);
  host.sysctl("ip_local_port_range", "1024\t60999");
  host.problem("ports", Severity::kFault);  // The listening port.
}

TEST(CheckXdp, MissingCapabilitiesAreNamed) {
  XdpHost host;
  host.tree.add_file("proc/self/status", "Name:\tx\nCapEff:\t0000000000002000\n");
  const Problem problem = host.problem("rights", Severity::kWarning);
  EXPECT_THAT(problem.what, HasSubstr("lacks CAP_NET_ADMIN, CAP_BPF"));
  EXPECT_THAT(problem.mend, HasSubstr("ztcp_setup --transport xdp"));
}

TEST(CheckXdp, APinnedProgramNeedsRawSocketsAlone) {
  XdpHost host;
  host.pin();
  host.tree.add_file("proc/self/status", "Name:\tx\nCapEff:\t0000000000002000\n");
  EXPECT_THAT(host.problem("rights", Severity::kGood).what, HasSubstr("that set-up pinned"));
  host.tree.add_file("proc/self/status", "Name:\tx\nCapEff:\t0000000000000000\n");
  EXPECT_THAT(host.problem("rights", Severity::kWarning).what, HasSubstr("lacks CAP_NET_RAW here"));
}

// A job takes the program as pinned by its link, and opens the other files.
TEST(CheckXdp, APinnedProgramWithoutItsLinkIsOff) {
  XdpHost host;
  host.pin();
  ::unlink(host.tree.path(XdpHost::pinned("link")).c_str());
  const Problem problem = host.problem("rights", Severity::kWarning);
  EXPECT_EQ(problem.what,
            "/run/ztcp-bpf/eth1/link is missing: the XDP program that set-up pinned is off eth1, "
            "and a job attaches its own, with CAP_BPF and CAP_NET_ADMIN");
  EXPECT_EQ(problem.mend, "sudo ztcp_setup --transport xdp pins it again");
}

TEST(CheckXdp, APinnedProgramWithoutAFileOfJobsIsAFault) {
  for (const char* file : {"program", "sockets", "steering"}) {
    XdpHost host;
    host.pin();
    ::unlink(host.tree.path(XdpHost::pinned(file)).c_str());
    EXPECT_EQ(host.problem("rights", Severity::kFault).what,
              std::string("/run/ztcp-bpf/eth1/") + file +
                  " is missing, a file of the XDP program that set-up pinned");
  }
}

TEST(CheckXdp, APinnedProgramOfOthersIsAFault) {
  XdpHost host;
  host.pin();
  ::chmod(host.tree.path("run/ztcp-bpf/eth1/sockets").c_str(), ::geteuid() == 0 ? 0600 : 0000);
  ::chmod(host.tree.path("run").c_str(), 0755);
  const bool root = ::geteuid() == 0;
  ASSERT_TRUE(!root || ::seteuid(65534) == 0);
  const Check said = host.said("rights");
  ASSERT_TRUE(!root || ::seteuid(0) == 0);
  EXPECT_EQ(said.severity, Severity::kFault);
  EXPECT_THAT(said.problem.what, HasSubstr("may not open /run/ztcp-bpf/eth1/sockets"));
}

}  // namespace
}  // namespace ztcp::config
