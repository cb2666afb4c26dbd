// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/local_addresses.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include <gtest/gtest.h>

namespace ztcp {
namespace {

TEST(LocalAddresses, ListTheKernelsAddresses) {
  const auto all = local_addresses();
  for (const LocalAddress& one : all) {
    EXPECT_FALSE(one.interface.empty());
    EXPECT_TRUE(one.is_up || !one.is_running) << one.interface;
    EXPECT_LE(one.prefix.length, one.prefix.address.is_v4() ? 32 : 128);
  }
  const auto loopback = std::find_if(all.begin(), all.end(), [](const LocalAddress& one) {
    return one.is_loopback && one.prefix.address.is_v4();
  });
  if (loopback == all.end()) return;  // A namespace may have none.
  EXPECT_EQ(to_string(loopback->prefix), "127.0.0.1/8");
  EXPECT_EQ(loopback->interface, "lo");
  EXPECT_GT(loopback->index, 0U);
}

LocalAddress of(const std::string& interface, const char* address) {
  return {.interface = interface, .prefix = *parse_ip_prefix(address)};
}

TEST(LocalAddresses, Ipv6AddressesHaveTheKernelsState) {
  std::vector<LocalAddress> all = {of("v0", "10.0.0.1/24"), of("v0", "fd66::9/64"),
                                   of("v0", "fd66::1/64"),  of("v0", "fd66::2/64"),
                                   of("v0", "fd66::3/64"),  of("v1", "fd66::9/64")};
  note_states(
      "fd660000000000000000000000000009 02 40 00 c8 v0\n"
      "fd660000000000000000000000000001 02 40 00 80 v0\n"
      "fd660000000000000000000000000002 02 40 00 40 v0\n"
      "fd660000000000000000000000000003 02 40 00 44 v0\n"
      "a line of a later kernel's\n",
      all);
  std::vector<AddressState> states;
  for (const LocalAddress& one : all) states.push_back(one.state);
  using enum AddressState;
  EXPECT_EQ(states, (std::vector{kUsable, kDuplicate, kUsable, kTentative, kUsable, kUsable}))
      << "an optimistic one can be bound to";
}

TEST(LocalAddresses, MasterOfAnInterfaceIsReadFromSysfs) {
  std::string root = testing::TempDir() + "masters-XXXXXX";
  ASSERT_NE(mkdtemp(root.data()), nullptr);
  namespace fs = std::filesystem;
  for (const char* const name : {"eth0", "eth1", "eth2", "bond0", "blue"})
    fs::create_directories(root + "/class/net/" + name);
  fs::create_directory_symlink("../bond0", root + "/class/net/eth0/master");
  fs::create_directory_symlink("../blue", root + "/class/net/eth1/master");
  std::ofstream(root + "/class/net/blue/uevent") << "DEVTYPE=vrf\nINTERFACE=blue\n";
  EXPECT_EQ(master_of("eth0", root), "bond0");
  EXPECT_EQ(master_of("eth1", root), "") << "a VRF";
  EXPECT_EQ(master_of("eth2", root), "");
  EXPECT_EQ(master_of("eth9", root), "");
  fs::remove_all(root);
}

}  // namespace
}  // namespace ztcp
