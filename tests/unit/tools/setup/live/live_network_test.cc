// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Real interfaces, recorded and put back, in a network namespace that goes with its test. A veth
// pair stands for a NIC: it is deleted, with all that the kernel knew of it, and made anew.
#include <algorithm>
#include <cstring>
#include <functional>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tools/ztcp_setup/live/live_host.h"
#include "tools/ztcp_setup/resources/interface_restore.h"

namespace ztcp::setup {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::IsSupersetOf;
using testing::Not;
using testing::SizeIs;

// The live machine, but a PCI function's interfaces are chosen by the test.
class HostWithNic final : public LiveHost {
 public:
  HostWithNic() : LiveHost(Purpose::kChange) {}
  std::vector<std::string> list(const std::string& folder) override {
    if (!folder.ends_with("/net")) return {};
    for (const char* name : {"nic0", "eth7"})
      if (*link(name)) return {name};
    return {};
  }
  Result<std::string> read_value(const std::string& path) override {
    if (path.starts_with("/sys/class/net/nic0/ifindex"))
      return "5\n";  // /sys has another namespace.
    if (manager && path == "/run/systemd/netif/state") return "OPER_STATE=routable\n";
    if (manager && pauses >= notices_after && path == "/run/systemd/netif/links/5")
      return "ADMIN_STATE=configuring\n";
    if (path.starts_with("/run/")) return fail(Errc::kSystem, "open", ENOENT);
    return LiveHost::read_value(path);
  }
  void pause(std::chrono::milliseconds time) override {
    ++pauses;
    if (manager)
      manager(pauses);
    else
      LiveHost::pause(time);
  }

  std::function<void(int)> manager;  // Runs in the n-th pause; absent: no interface is managed.
  int pauses = 0;
  int notices_after = 2;  // Pauses until the manager has seen the interface.
};

class LiveNetwork : public testing::Test {
 protected:
  void SetUp() override {
    if (::unshare(CLONE_NEWNET) != 0 && ::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0)
      GTEST_SKIP() << "no right to a network namespace";
    make_nic();
    ip("link set lo up");
  }

  void ip(const std::string& words) { static_cast<void>(shown(words)); }

  // What ip prints.
  std::string shown(const std::string& words) {
    std::vector<std::string> argv{"ip"};
    for (std::size_t begin = 0; begin < words.size();) {
      const auto end = std::min(words.find(' ', begin), words.size());
      argv.push_back(words.substr(begin, end - begin));
      begin = end + 1;
    }
    const auto result = host_.run(argv, std::chrono::seconds{30});
    EXPECT_TRUE(result.has_value() && result->exit_status == 0)
        << "ip " << words << ": " << (result ? result->output : "");
    return result ? result->output : "";
  }

  void make_nic() {
    ip("link add nic0 address 02:00:00:00:00:01 type veth peer name wire0");
    // Without an address of its own, whose route would come when the kernel finds the time.
    ip("link set wire0 addrgenmode none up");
  }

  InterfaceState record(const std::string& name) {
    const auto link = host_.link(name);
    EXPECT_TRUE(link.has_value() && link->has_value());
    return **link;
  }

  // What a driver change does, and back.
  Reverted lose_and_put_back(const InterfaceState& before, bool keep_name = true) {
    ip("link delete nic0");
    make_nic();
    if (!keep_name) ip("link set nic0 name eth7");
    Reverted restored;
    restore_interfaces(host_, "0000:01:00.0", {before}, restored);
    return restored;
  }

  static std::string words(const config::Problems& problems) {
    std::string text;
    for (const auto& problem : problems) text += to_string(problem) + "\n";
    return text;
  }

  static std::vector<std::string> commands(const std::vector<NetworkItem>& items) {
    std::vector<std::string> commands;
    for (const NetworkItem& item : items) commands.push_back(item.command);
    return commands;
  }

  HostWithNic host_;
};

TEST_F(LiveNetwork, AddressesRoutesAndSizesComeBack) {
  ip("link set dev nic0 mtu 8500 txqueuelen 500 alias rail up");
  ip("address add 10.77.1.5/24 brd + dev nic0");
  ip("address add 10.77.1.6/24 dev nic0 label nic0:1");
  ip("address add 10.5.5.5 peer 10.5.5.6/32 dev nic0 scope link");
  ip("address add 10.8.8.8/16 dev nic0 noprefixroute");
  ip("address add fd00:1::5/64 dev nic0 nodad");
  ip("neighbour add 10.77.1.9 lladdr 02:00:00:00:00:99 nud permanent dev nic0");
  ip("route add 10.99.0.0/16 via 10.77.1.1 dev nic0 src 10.77.1.6 metric 77 mtu lock 1400");
  ip("route add 10.98.0.0/16 via 10.77.1.1 dev nic0 proto static table 1000");
  ip("route add 203.0.113.1 via 192.0.2.1 dev nic0 onlink");
  ip("-6 route add fd00:9::/64 via fd00:1::1 dev nic0 metric 50");
  ip("route add 10.97.0.0/16 dev nic0 scope link proto dhcp");
  const InterfaceState before = record("nic0");
  EXPECT_THAT(commands(before.addresses),
              Contains("ip address add 10.8.8.8/16 noprefixroute dev nic0"));
  EXPECT_THAT(
      commands(before.routes),
      Contains("ip route add 10.99.0.0/16 via 10.77.1.1 dev nic0 proto 3 src 10.77.1.6 metric 77"));

  const Reverted restored = lose_and_put_back(before);
  EXPECT_THAT(restored.faults, IsEmpty()) << words(restored.faults);
  const InterfaceState after = record("nic0");
  EXPECT_EQ(after.mtu_bytes, 8500U);
  EXPECT_EQ(after.queue_length, 500U);
  EXPECT_EQ(after.alias, "rail");
  EXPECT_EQ(after.mac, before.mac);
  EXPECT_TRUE(after.up);
  EXPECT_EQ(commands(after.addresses), commands(before.addresses));
  EXPECT_EQ(commands(after.neighbours), commands(before.neighbours));
  auto routes = commands(after.routes);
  auto wanted = commands(before.routes);
  std::sort(routes.begin(), routes.end());
  std::sort(wanted.begin(), wanted.end());
  EXPECT_EQ(routes, wanted);
  // The route's own size, which no command above tells.
  EXPECT_THAT(shown("route show 10.99.0.0/16"), HasSubstr("mtu lock 1400"));
}

TEST_F(LiveNetwork, NexthopObjectsComeBackWithTheRoutesThatReferToThem) {
  ip("link set nic0 up");
  ip("address add 10.77.1.5/24 dev nic0");
  ip("address add fd00:1::5/64 dev nic0 nodad");
  ip("nexthop add id 9 via 10.77.1.1 dev nic0 proto static");
  ip("nexthop add id 12 via 192.0.2.1 dev nic0 onlink");
  ip("-6 nexthop add id 11 via fd00:1::1 dev nic0");
  ip("nexthop add id 8 group 9/12,3");  // Its number stands before its members'.
  ip("route add 10.99.0.0/16 nhid 9 metric 77");
  ip("route add 10.98.0.0/16 nhid 8");
  ip("-6 route add fd00:9::/64 nhid 11");
  ip("route add 10.97.0.0/16 nhid 12");
  const std::string nexthops = shown("nexthop");
  const std::string routes = shown("route") + shown("-6 route");
  const InterfaceState before = record("nic0");
  EXPECT_THAT(commands(before.routes),
              IsSupersetOf({"ip nexthop add id 9 via 10.77.1.1 dev nic0 proto 4",
                            "ip nexthop replace id 8 group 9/12,3 proto 0",
                            "ip route add 10.99.0.0/16 nhid 9 proto 3 metric 77"}));

  const Reverted restored = lose_and_put_back(before);
  EXPECT_THAT(restored.faults, IsEmpty()) << words(restored.faults);
  EXPECT_EQ(shown("nexthop"), nexthops);
  EXPECT_EQ(shown("route") + shown("-6 route"), routes);
  EXPECT_EQ(commands(record("nic0").routes), commands(before.routes));
}

// Two NICs go one after the other and come back the other way round, as undo has it.
TEST_F(LiveNetwork, ANexthopGroupOverTwoNicsIsWholeAgain) {
  for (const char* words :
       {"link add nic1 type veth peer name wire1", "link set wire1 up", "link set nic0 up",
        "link set nic1 up", "address add 10.77.1.5/24 dev nic0",
        "address add 10.78.1.5/24 dev nic1", "nexthop add id 7 via 10.77.1.1 dev nic0",
        "nexthop add id 8 via 10.78.1.1 dev nic1", "nexthop add id 20 group 7/8",
        "nexthop add id 21 group 7/8 type resilient buckets 8 idle_timer 60",
        "route add 10.99.0.0/16 nhid 20", "route add 10.98.0.0/16 nhid 21"})
    ip(words);
  const std::string routes = shown("route");
  const InterfaceState first = record("nic0");
  ip("link set nic0 down");
  EXPECT_THAT(shown("nexthop"), HasSubstr("id 20 group 8 ")) << "the kernel keeps what is left";
  const InterfaceState second = record("nic1");
  ip("link set nic1 down");
  EXPECT_THAT(shown("nexthop"), IsEmpty());

  ip("link set nic1 up");
  // nic1 stands for another function's interface: it is put back item by item.
  for (const NetworkItem& item : second.routes) EXPECT_TRUE(host_.add_item("nic1", item));
  const Reverted whole = lose_and_put_back(first);
  EXPECT_THAT(whole.faults, IsEmpty()) << words(whole.faults);
  EXPECT_THAT(shown("nexthop"), HasSubstr("id 20 group 7/8 "));
  EXPECT_THAT(shown("nexthop"),
              HasSubstr("id 21 group 7/8 type resilient buckets 8 idle_timer 60"));
  EXPECT_EQ(shown("route"), routes);
}

TEST_F(LiveNetwork, RoutesByNexthopObjectsAreSeenWhereTheKernelHidesTheirInterface) {
  ASSERT_TRUE(
      host_.write_value("/proc/sys/net/ipv4/nexthop_compat_mode", "0", std::chrono::seconds{10}));
  ip("link set nic0 up");
  ip("address add 10.77.1.5/24 dev nic0");
  ip("nexthop add id 7 via 10.77.1.1 dev nic0");
  ip("route add 10.99.0.0/16 nhid 7");
  const InterfaceState before = record("nic0");
  const Reverted restored = lose_and_put_back(before);
  EXPECT_THAT(restored.faults, IsEmpty()) << words(restored.faults);
  EXPECT_THAT(shown("route"), HasSubstr("10.99.0.0/16 nhid 7"));
}

TEST_F(LiveNetwork, InterfacesOnTopComeBackWithTheirOwn) {
  ip("link set nic0 up");
  ip("link add link nic0 name top0 address 02:00:00:00:00:33 type macvlan mode private");
  ip("link set dev top0 mtu 1300 up");
  ip("address add 10.78.1.5/24 dev top0");
  ip("route add 10.96.0.0/16 via 10.78.1.1 dev top0");
  const InterfaceState before = record("nic0");
  ASSERT_THAT(before.children, SizeIs(1));
  const Reverted restored = lose_and_put_back(before);
  EXPECT_THAT(restored.faults, IsEmpty()) << words(restored.faults);
  const InterfaceState after = record("nic0");
  ASSERT_THAT(after.children, SizeIs(1));
  const InterfaceState& top = after.children.front();
  EXPECT_EQ(top.kind, "macvlan");
  EXPECT_EQ(top.info, before.children.front().info);  // Private, not the default.
  EXPECT_EQ(top.mac, "02:00:00:00:00:33");
  EXPECT_EQ(top.mtu_bytes, 1300U);
  EXPECT_EQ(commands(top.addresses), commands(before.children.front().addresses));
  EXPECT_EQ(commands(top.routes), commands(before.children.front().routes));
}

TEST_F(LiveNetwork, AnotherNicsInterfaceOfTheSameNameIsLeftAlone) {
  ip("link set nic0 up");
  ip("link add link nic0 name top0 type macvlan mode private");
  ip("link set top0 up");
  ip("address add 10.78.1.5/24 dev top0");
  const InterfaceState before = record("nic0");
  ip("link delete nic0");
  make_nic();
  ip("link add nic1 type veth peer name wire1");
  ip("link add link nic1 name top0 type macvlan mode private");
  const InterfaceState stranger = record("top0");
  Reverted restored;
  restore_interfaces(host_, "0000:01:00.0", {before}, restored);
  EXPECT_THAT(words(restored.faults), HasSubstr("top0: is another interface than the macvlan"));
  EXPECT_EQ(record("top0"), stranger);
}

TEST_F(LiveNetwork, ABridgePortIsOneAgain) {
  ip("link add br0 type bridge");
  ip("link set dev nic0 master br0 up");
  const InterfaceState before = record("nic0");
  EXPECT_EQ(before.master, "br0");
  const Reverted restored = lose_and_put_back(before);
  EXPECT_THAT(restored.faults, IsEmpty()) << words(restored.faults);
  EXPECT_EQ(record("nic0").master, "br0");
}

TEST_F(LiveNetwork, SysctlsComeBack) {
  ASSERT_TRUE(
      host_.write_value("/proc/sys/net/ipv4/conf/nic0/arp_ignore", "2", std::chrono::seconds{10}));
  const InterfaceState before = record("nic0");
  EXPECT_THAT(before.sysctls,
              Contains(testing::Pair("/proc/sys/net/ipv4/conf/nic0/arp_ignore", "2\n")));
  const Reverted restored = lose_and_put_back(before);
  EXPECT_THAT(restored.faults, IsEmpty()) << words(restored.faults);
  EXPECT_EQ(host_.read_value("/proc/sys/net/ipv4/conf/nic0/arp_ignore"), "2\n");
}

TEST_F(LiveNetwork, AnotherNameIsTakenBack) {
  ip("link set nic0 up");
  ip("address add 10.77.1.5/24 dev nic0");
  const InterfaceState before = record("nic0");
  const Reverted restored = lose_and_put_back(before, false);
  EXPECT_THAT(restored.faults, IsEmpty()) << words(restored.faults);
  EXPECT_EQ(commands(record("nic0").addresses), commands(before.addresses));
}

TEST_F(LiveNetwork, ALeaseComesBackWithWhatIsLeftOfIt) {
  ip("link set nic0 up");
  ip("address add 10.77.1.5/24 valid_lft 5000 preferred_lft 4000 dev nic0");
  const InterfaceState before = record("nic0");
  const Reverted restored = lose_and_put_back(before);
  EXPECT_THAT(restored.faults, IsEmpty()) << words(restored.faults);
  EXPECT_THAT(words(restored.notes), HasSubstr("has a lease back"));
  const InterfaceState after = record("nic0");
  ASSERT_THAT(after.addresses, Not(IsEmpty()));
  const NetworkItem& lease = after.addresses.front();
  EXPECT_NEAR(static_cast<double>(lease.expires_unix_s),
              static_cast<double>(before.addresses.front().expires_unix_s), 60.0);
}

TEST_F(LiveNetwork, AManagersLeaseIsWaitedFor) {
  const std::string leased = "address add 10.77.1.5/24 valid_lft 5000 preferred_lft 4000 dev nic0";
  ip("link set nic0 up");
  ip(leased + " metric 1024");
  const InterfaceState before = record("nic0");
  host_.manager = [&](int pauses) {
    if (pauses == 3) ip(leased + " metric 1024");
  };
  const Reverted restored = lose_and_put_back(before);
  EXPECT_THAT(restored.faults, IsEmpty()) << words(restored.faults);
  EXPECT_THAT(restored.notes, IsEmpty()) << words(restored.notes);
  EXPECT_EQ(commands(record("nic0").routes), commands(before.routes));
}

TEST_F(LiveNetwork, AManagerThatGetsNoLeaseIsNotWaitedForForEver) {
  ip("link set nic0 up");
  ip("address add 10.77.1.5/24 valid_lft 5000 preferred_lft 4000 dev nic0");
  const InterfaceState before = record("nic0");
  host_.manager = [](int) {};
  const Reverted restored = lose_and_put_back(before);
  EXPECT_THAT(restored.faults, IsEmpty()) << words(restored.faults);
  EXPECT_THAT(words(restored.notes), HasSubstr("has a lease back"));
  EXPECT_LE(host_.pauses, 200);
}

TEST_F(LiveNetwork, WhatIsThereAlreadyIsNoFault) {
  ip("link set nic0 up");
  ip("address add 10.77.1.5/24 dev nic0");
  ip("route add 10.99.0.0/16 via 10.77.1.1");
  const InterfaceState before = record("nic0");
  Reverted restored;
  restore_interfaces(host_, "0000:01:00.0", {before}, restored);
  EXPECT_THAT(restored.faults, IsEmpty()) << words(restored.faults);
  EXPECT_EQ(record("nic0"), before);
  for (const NetworkItem& item : before.addresses) EXPECT_TRUE(host_.add_item("nic0", item));
  for (const NetworkItem& item : before.routes) EXPECT_TRUE(host_.add_item("nic0", item));
}

TEST_F(LiveNetwork, WhatCanNotComeBackIsNamedWithItsCommand) {
  ip("link set nic0 up");
  ip("address add 10.77.1.5/24 dev nic0");
  ip("route add 10.99.0.0/16 via 10.77.1.1 dev nic0");
  InterfaceState before = record("nic0");
  std::erase_if(before.addresses, [](const NetworkItem& item) {
    return item.command.find("10.77.1.5") != std::string::npos;
  });
  std::erase_if(before.routes, [](const NetworkItem& item) {
    return item.command.find("10.77.1.0/24") != std::string::npos;
  });
  const Reverted restored = lose_and_put_back(before);
  EXPECT_THAT(words(restored.faults),
              HasSubstr("sudo ip route add 10.99.0.0/16 via 10.77.1.1 dev nic0"));
}

// What a person would ask, by older calls than those that record and restore.
class LiveNetworkSettings : public LiveNetwork {
 protected:
  static bool ask(void* request) {
    ifreq call{};
    std::strcpy(call.ifr_name, "nic0");
    call.ifr_data = static_cast<char*>(request);
    const int socket = ::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    const bool done = ::ioctl(socket, SIOCETHTOOL, &call) == 0;
    ::close(socket);
    return done;
  }
  static std::uint32_t flag(std::uint32_t command) {
    ethtool_value value{command, 2};
    EXPECT_TRUE(ask(&value));
    return value.data;
  }
  static void set_flag(std::uint32_t command, std::uint32_t on) {
    ethtool_value value{command, on};
    EXPECT_TRUE(ask(&value));
  }
  static ethtool_channels channels() {
    ethtool_channels channels{};
    channels.cmd = ETHTOOL_GCHANNELS;
    EXPECT_TRUE(ask(&channels));
    return channels;
  }

  void make_wide_nic() {
    ip("link delete nic0");
    ip("link add nic0 address 02:00:00:00:00:01 numtxqueues 4 numrxqueues 4 type veth peer name "
       "wire0 numtxqueues 4 numrxqueues 4");
  }
  // Of the kernel's own interfaces the one that knows coalescing: up to 64 frames.
  void make_tap() {
    ip("link delete nic0");
    ip("tuntap add dev nic0 mode tap");
  }
  static ethtool_coalesce coalescing() {
    ethtool_coalesce coalescing{};
    coalescing.cmd = ETHTOOL_GCOALESCE;
    EXPECT_TRUE(ask(&coalescing));
    return coalescing;
  }
  InterfaceState record_whole() {
    InterfaceState link = record("nic0");
    link.settings = host_.settings("nic0").value();
    return link;
  }
};

TEST_F(LiveNetworkSettings, FeaturesAndChannelsComeBack) {
  make_wide_nic();
  ASSERT_EQ(channels().rx_count, 4U);
  ASSERT_EQ(flag(ETHTOOL_GTSO), 1U);
  ASSERT_EQ(flag(ETHTOOL_GGRO), 0U);
  ethtool_channels fewer = channels();
  fewer.cmd = ETHTOOL_SCHANNELS;
  fewer.rx_count = 2;
  fewer.tx_count = 3;
  ASSERT_TRUE(ask(&fewer));
  set_flag(ETHTOOL_STSO, 0);
  set_flag(ETHTOOL_SGRO, 1);
  const InterfaceState before = record_whole();

  make_wide_nic();
  ASSERT_EQ(channels().tx_count, 4U);
  ASSERT_EQ(flag(ETHTOOL_GTSO), 1U);
  Reverted restored;
  restore_interfaces(host_, "0000:01:00.0", {before}, restored);
  EXPECT_THAT(restored.faults, IsEmpty()) << words(restored.faults);
  EXPECT_THAT(restored.notes, IsEmpty()) << words(restored.notes);
  EXPECT_EQ(channels().rx_count, 2U);
  EXPECT_EQ(channels().tx_count, 3U);
  EXPECT_EQ(flag(ETHTOOL_GTSO), 0U);
  EXPECT_EQ(flag(ETHTOOL_GGRO), 1U);
  EXPECT_EQ(record_whole().settings, before.settings);
}

TEST_F(LiveNetworkSettings, WhatTheDriverRefusesIsNotedAndNoFault) {
  make_wide_nic();
  InterfaceState before = record_whole();
  for (SettingGroup& group : before.settings)
    for (auto& [name, value] : group.values)
      if (group.name == "channels" && (name == "rx" || name == "tx"))
        value = name == "rx" ? 64 : 3;  // More than there are.
  before.settings.push_back({"features", {{"no-such-feature", 1}}});
  Reverted restored;
  restore_interfaces(host_, "0000:01:00.0", {before}, restored);
  EXPECT_THAT(restored.faults, IsEmpty()) << words(restored.faults);
  EXPECT_THAT(words(restored.notes),
              HasSubstr("nic0: channels rx was 64 and is 4 now: Invalid argument"));
  EXPECT_THAT(words(restored.notes), HasSubstr("sudo ethtool -L nic0 rx 64"));
  EXPECT_THAT(words(restored.notes), HasSubstr("no-such-feature was on and is not to be had now"));
  EXPECT_EQ(channels().tx_count, 3U);
}

TEST_F(LiveNetworkSettings, CoalescingComesBackAndWhatTheDriverMadeOfItIsRead) {
  if (::access("/dev/net/tun", R_OK | W_OK) != 0) GTEST_SKIP() << "no /dev/net/tun";
  make_tap();
  ethtool_coalesce more = coalescing();
  more.cmd = ETHTOOL_SCOALESCE;
  more.rx_max_coalesced_frames = 32;
  ASSERT_TRUE(ask(&more));
  InterfaceState before = record_whole();

  make_tap();
  ASSERT_EQ(coalescing().rx_max_coalesced_frames, 0U);
  Reverted restored;
  restore_interfaces(host_, "0000:01:00.0", {before}, restored);
  EXPECT_THAT(restored.notes, IsEmpty()) << words(restored.notes);
  EXPECT_EQ(coalescing().rx_max_coalesced_frames, 32U);

  for (SettingGroup& group : before.settings)
    for (auto& [name, value] : group.values)
      if (group.name == "coalesce" && name == "rx-frames") value = 500;
  restore_interfaces(host_, "0000:01:00.0", {before}, restored);
  EXPECT_THAT(restored.faults, IsEmpty()) << words(restored.faults);
  EXPECT_THAT(words(restored.notes),
              HasSubstr("nic0: coalesce rx-frames was 500 and is 64 now: the driver did not take "
                        "it"));
}

}  // namespace
}  // namespace ztcp::setup
