// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Driver settings of ethtool, recorded and restored after the interface was created anew.
#include "tools/ztcp_setup/live/ethtool.h"

#include <cstring>
#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_setup/live/live_network.h"

namespace ztcp::setup {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

// Reads the settings through older calls than those that record and restore.
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
  // The only kernel interface with coalescing: up to 64 frames.
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

TEST_F(LiveNetworkSettings, TheLargestNumberOfQueuesIsRead) {
  make_wide_nic();
  ethtool_channels fewer = channels();
  fewer.cmd = ETHTOOL_SCHANNELS;
  fewer.rx_count = 2;
  ASSERT_TRUE(ask(&fewer));
  EXPECT_EQ(host_.most_queues("nic0"), 4U) << "however many are in use";
  EXPECT_EQ(host_.most_queues("lo"), std::nullopt);
  EXPECT_EQ(host_.most_queues("none-such"), std::nullopt);
}

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

TEST_F(LiveNetworkSettings, RefusedSettingsAreNotesNotFaults) {
  make_wide_nic();
  InterfaceState before = record_whole();
  for (SettingGroup& group : before.settings)
    for (auto& [name, value] : group.values)
      if (group.name == "channels" && (name == "rx" || name == "tx"))
        value = name == "rx" ? 64 : 3;  // Beyond the limit.
  before.settings.push_back({"features", {{"no-such-feature", 1}}});
  Reverted restored;
  restore_interfaces(host_, "0000:01:00.0", {before}, restored);
  EXPECT_THAT(restored.faults, IsEmpty()) << words(restored.faults);
  EXPECT_THAT(words(restored.notes),
              HasSubstr("nic0: channels rx was 64 and is 4 now: Invalid argument"));
  EXPECT_THAT(words(restored.notes), HasSubstr("sudo ethtool -L nic0 rx 64"));
  EXPECT_THAT(words(restored.notes), HasSubstr("no-such-feature was on and is unavailable now"));
  EXPECT_EQ(channels().tx_count, 3U);
}

TEST_F(LiveNetworkSettings, CoalescingComesBackAsTheDriverAppliesIt) {
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
