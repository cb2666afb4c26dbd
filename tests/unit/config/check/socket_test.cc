// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/check/check.h"
#include "config/machine/live_machine.h"
#include "tests/support/tree.h"

namespace ztcp::config {
namespace {

using testing::AllOf;
using testing::EndsWith;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::StartsWith;

LocalAddress at(const char* interface, const char* address, std::uint32_t index) {
  return {.interface = interface,
          .index = index,
          .prefix = *parse_ip_prefix(address),
          .is_up = true,
          .is_running = true};
}

// A host with a good interface; each test breaks one thing.
struct Host {
  test::Tree tree{
      "file path=sys/class/net/eth1/mtu text=9000\n"
      "file path=sys/class/net/eth1/speed text=25000\n"
      "file path=proc/sys/net/ipv4/tcp_moderate_rcvbuf text=1\n"
      "file path=proc/sys/net/ipv4/ip_local_port_range text=32768\\t60999\n"
      "file path=proc/sys/net/ipv4/ip_local_reserved_ports text=\n"
      "file path=proc/sys/net/ipv4/tcp_rmem text=4096\\t131072\\t6291456\n"
      "file path=proc/sys/net/ipv4/tcp_wmem text=4096\\t16384\\t4194304\n"};
  LiveMachine machine{tree.root()};
  Fabric fabric;
  AddressList addresses{at("eth1", "10.0.0.5/24", 3)};

  Host() {
    fabric.path = "/etc/ztcp.conf";
    fabric.run_dir = "/nowhere";  // No locks are needed.
    Nic nic;
    nic.name = "ztcp0";
    nic.driver = NicDriver::kSocket;
    nic.interface = "eth1";
    nic.address = *parse_ip_prefix("10.0.0.5/24");
    fabric.nics.push_back(nic);
  }
  Nic& nic() { return fabric.nics.front(); }

  void sysctl(const std::string& name, const std::string& value) {
    tree.add_file("proc/sys/net/" + name, value + "\n");
  }

  // The result of one check, the first with the worst severity.
  Check said(const std::string& name) {
    for (const Check& check : run_checks(fabric, machine, {}, {}, addresses))
      if (check.name == name) return check;
    return {};
  }
  Problem problem(const std::string& name, Severity severity) {
    const Check check = said(name);
    EXPECT_EQ(check.severity, severity) << to_string(check.problem);
    return check.problem;
  }
};

TEST(CheckSocket, AHealthyHostIsGood) {
  Host host;
  EXPECT_THAT(check_host(host.fabric, host.machine, {}, {}, host.addresses), IsEmpty());
  for (const Check& check : run_checks(host.fabric, host.machine, {}, {}, host.addresses))
    EXPECT_EQ(check.severity, Severity::kGood) << to_string(check.problem);
  EXPECT_EQ(host.said("interface").problem.what, "eth1 10.0.0.5/24, MTU 9000");
  EXPECT_EQ(host.said("ports").problem.what, "64 of 64 are free (7472-7535): one for each process");
  EXPECT_EQ(host.said("buffers").problem.what, "up to 6144 KiB a connection");
}

TEST(CheckSocket, AMissingInterfaceIsAFault) {
  Host host;
  host.nic().interface = "eth7";
  const Problem problem = host.problem("interface", Severity::kFault);
  EXPECT_THAT(problem.what, HasSubstr("interface = \"eth7\" is not an interface"));
  EXPECT_THAT(problem.mend, HasSubstr("correct interface in /etc/ztcp.conf"));
  EXPECT_THAT(host.said("ports").name, IsEmpty()) << "nothing more can be said";
}

TEST(CheckSocket, FaultsOfAMergedInterfaceAreWarnings) {
  Host host;
  host.nic().merge = "ib0";
  host.nic().interface = "eth7";
  EXPECT_THAT(host.problem("interface", Severity::kWarning).what, HasSubstr("is not an interface"));
  host.nic().interface = "eth1";
  host.addresses.clear();
  EXPECT_THAT(host.problem("address", Severity::kWarning).what, HasSubstr("eth1 has none"));
}

TEST(CheckSocket, AnInterfaceMissingInSysfsOnlyIsGood) {
  Host host;
  host.nic().interface = host.addresses[0].interface = "veth7";
  EXPECT_EQ(host.problem("interface", Severity::kGood).what, "veth7 10.0.0.5/24, MTU unknown");
}

TEST(CheckSocket, AnInterfaceWithoutAnAddressIsAFault) {
  Host host;
  host.addresses.clear();
  EXPECT_THAT(host.problem("address", Severity::kFault).what, HasSubstr("eth1 has none"));
}

TEST(CheckSocket, AnAddressThatDiffersFromTheConfigsIsAFault) {
  Host host;
  host.addresses = {at("eth1", "10.0.0.6/24", 3), at("eth1", "fe80::6/64", 3),
                    at("eth0", "10.0.0.5/24", 2)};
  const Problem problem = host.problem("address", Severity::kFault);
  EXPECT_THAT(problem.what, HasSubstr("address = \"10.0.0.5/24\" in the config, eth1 has "
                                      "10.0.0.6/24, fe80::6/64"));
  EXPECT_THAT(problem.mend, HasSubstr("sudo ip address add 10.0.0.5/24 dev eth1"));
}

TEST(CheckSocket, ADownInterfaceIsAFaultAndNoCarrierAWarning) {
  Host host;
  host.addresses[0].is_running = false;
  EXPECT_THAT(host.problem("interface", Severity::kWarning).what, HasSubstr("has no carrier"));
  host.addresses[0].is_up = false;
  EXPECT_EQ(host.problem("interface", Severity::kFault).mend, "sudo ip link set dev eth1 up");
}

TEST(CheckSocket, AnAddressWithALabelIsOnTheInterfaceBeforeTheColon) {
  Host host;
  host.nic().interface = host.addresses[0].interface = "eth1:2";
  EXPECT_EQ(host.problem("interface", Severity::kGood).what, "eth1:2 10.0.0.5/24, MTU 9000");
}

TEST(CheckSocket, TwoInterfacesInOneNetworkAreAWarning) {
  Host host;
  host.addresses.push_back(at("eth0", "10.0.0.4/24", 2));
  const Problem arp = host.problem("network", Severity::kWarning);
  EXPECT_THAT(arp.what, HasSubstr("eth1 and eth0 are in one network (10.0.0.5/24, 10.0.0.4/24)"));
  EXPECT_THAT(arp.mend, HasSubstr("arp_ignore=1"));
  host.sysctl("ipv4/conf/all/arp_ignore", "1");
  EXPECT_THAT(host.problem("network", Severity::kGood).what, HasSubstr("kept apart"));
  host.sysctl("ipv4/conf/eth1/rp_filter", "1");
  EXPECT_THAT(host.problem("network", Severity::kWarning).mend,
              HasSubstr("sysctl -w net/ipv4/conf/eth1/rp_filter=2"));
  host.sysctl("ipv4/conf/all/rp_filter", "2");
  EXPECT_EQ(host.said("network").severity, Severity::kGood) << "the larger one counts";
  host.addresses.back().is_up = false;
  EXPECT_THAT(host.said("network").name, IsEmpty());
}

// "0: 00000000:1D30 ...": 7472 and up, on all addresses.
std::string listeners(int first, int last, const char* state = "0A",
                      const char* address = "00000000") {
  std::string text = "  sl  local_address rem_address   st tx_queue rx_queue\n";
  char line[128];
  for (int port = first; port <= last; ++port) {
    std::snprintf(line, sizeof line, "   %d: %s:%04X 00000000:0000 %s 00000000:00000000\n",
                  port - first, address, static_cast<unsigned>(port), state);
    text += line;
  }
  return text;
}

TEST(CheckSocket, NoFreePortIsAFault) {
  Host host;
  host.tree.add_file("proc/net/tcp", listeners(7472, 7501));
  host.tree.add_file("proc/net/tcp6", listeners(7500, 7503));
  EXPECT_THAT(host.problem("ports", Severity::kGood).what, HasSubstr("32 of 64 are free"));
  host.tree.add_file("proc/net/tcp", listeners(7472, 7535, "01"));
  EXPECT_THAT(host.problem("ports", Severity::kGood).what, HasSubstr("60 of 64 are free"))
      << "a connection is no listener";
  host.tree.add_file("proc/net/tcp", listeners(7472, 7535));
  const Problem problem = host.problem("ports", Severity::kFault);
  EXPECT_THAT(problem.what, HasSubstr("all ports 7472-7535 are in use"));
  EXPECT_THAT(problem.mend, HasSubstr("widen first_port and last_port in /etc/ztcp.conf"));
  host.nic().first_port = host.nic().last_port = 0;
  EXPECT_THAT(host.said("ports").name, IsEmpty()) << "the kernel finds one";
}

TEST(CheckSocket, ListenersOnOtherAddressesTakeNoPort) {
  Host host;
  for (const char* other : {"0100007F", "0600000A"}) {
    host.tree.add_file("proc/net/tcp", listeners(7472, 7535, "0A", other));
    EXPECT_THAT(host.problem("ports", Severity::kGood).what, HasSubstr("64 of 64 are free"));
  }
  host.tree.add_file("proc/net/tcp", listeners(7472, 7535, "0A", "0500000A"));
  EXPECT_THAT(host.problem("ports", Severity::kFault).what, EndsWith("are in use"));
}

TEST(CheckSocket, ListenersThatMayBeForIpv6AloneAreCountedAndNamed) {
  constexpr const char* kAny = "00000000000000000000000000000000";
  Host host;
  host.tree.add_file("proc/net/tcp6", listeners(7472, 7472, "0A", kAny));
  EXPECT_THAT(host.problem("ports", Severity::kGood).what,
              AllOf(StartsWith("63 of 64 are free"), HasSubstr("also those for IPv6 alone")));
  host.tree.add_file("proc/net/tcp6", listeners(7472, 7535, "0A", kAny));
  EXPECT_THAT(host.problem("ports", Severity::kFault).what,
              EndsWith("are in use; listeners on [::] count, also those for IPv6 alone"));
  host.nic().address = *parse_ip_prefix("fd00::5/64");
  host.addresses.front().prefix = host.nic().address;
  EXPECT_THAT(host.problem("ports", Severity::kFault).what, EndsWith("are in use"))
      << "no doubt about an IPv6 address";
}

TEST(CheckSocket, PortsInTheEphemeralRangeAreAWarning) {
  Host host;
  host.sysctl("ipv4/ip_local_port_range", "1024\t65000");
  EXPECT_THAT(host.problem("ports", Severity::kWarning).mend,
              HasSubstr("ip_local_reserved_ports=7472-7535"));
  host.sysctl("ipv4/ip_local_reserved_ports", "7472-7535");
  EXPECT_EQ(host.said("ports").severity, Severity::kGood);
}

TEST(CheckSocket, SmallBuffersAreAWarning) {
  Host host;
  host.sysctl("ipv4/tcp_rmem", "4096\t65536\t262144");
  const Problem problem = host.problem("buffers", Severity::kWarning);
  EXPECT_THAT(problem.what, HasSubstr("256 KiB a connection"));
  EXPECT_EQ(problem.mend, "sudo sysctl -w net.ipv4.tcp_rmem=\"4096 65536 4194304\"");
}

TEST(CheckSocket, TheSpeedToldToNcclIsChecked) {
  Host host;
  EXPECT_EQ(host.problem("speed", Severity::kGood).what, "25000 Mb/s");
  host.nic().speed_mbps = 100000;
  EXPECT_EQ(host.problem("speed", Severity::kWarning).what,
            "speed_mbps = 100000 in the config, eth1 says 25000");
  host.tree.add_file("sys/class/net/eth1/speed", "-1\n");  // virtio reports no speed.
  EXPECT_EQ(host.problem("speed", Severity::kGood).what, "100000 Mb/s");
  host.nic().speed_mbps = 0;
  EXPECT_THAT(host.problem("speed", Severity::kWarning).what, HasSubstr("10000 Mb/s, a guess"));
  host.addresses[0].is_loopback = true;
  EXPECT_EQ(host.said("speed").name, "");
}

TEST(CheckSocket, SysctlsThatSlowConnectionsAreAWarning) {
  for (const char* name : {"tcp_moderate_rcvbuf", "tcp_window_scaling", "tcp_sack"}) {
    Host host;
    host.sysctl(std::string("ipv4/") + name, "0");
    std::vector<Problem> warned;
    for (const Check& check : run_checks(host.fabric, host.machine, {}, {}, host.addresses))
      if (check.severity == Severity::kWarning) warned.push_back(check.problem);
    ASSERT_EQ(warned.size(), 1U);
    EXPECT_EQ(warned[0].where, std::string("net.ipv4.") + name);
    EXPECT_EQ(warned[0].mend, "sudo sysctl -w net.ipv4." + std::string(name) + "=1");
  }
}

}  // namespace
}  // namespace ztcp::config
