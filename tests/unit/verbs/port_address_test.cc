// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/port_address.h"

#include <string>

#include <gmock/gmock.h>

#include "tests/unit/verbs/fake_host.h"

namespace ztcp::verbs {
namespace {

using testing::HasSubstr;

constexpr const char* kTypes = "sys/class/infiniband/fake0/ports/1/gid_attrs/types/";

// One device with one NIC of the config.
FakeHost host_with(std::vector<ibv_gid> gids) {
  test::FakeDeviceSpec spec = roce_device("fake0", 1);
  spec.ports[0].gids = std::move(gids);
  return FakeHost({spec, roce_device("fake1", 2)}, 1);
}

TEST(PortAddress, IsTheConfigsOwnAddressWhereThePortHasSeveral) {
  const ibv_gid storage = gid_of(0, 0xffff'7f00'0009ULL);
  const ibv_gid own = gid_of(0, 0xffff'7f00'0001ULL);
  const FakeHost host = host_with({storage, storage, own, own});
  EXPECT_EQ(host.list()[0].address.gid.index, 3);
  EXPECT_EQ(to_string(host.list()[0].address.gid.gid), "127.0.0.1");
}

// The container sees its index, but can't read its type.
TEST(PortAddress, AGidOfAnotherNetworkNamespaceIsRefused) {
  FakeHost host;
  host.tree.add_file(std::string(kTypes) + "2", "");
  host.variables.gid_index = 2;
  EXPECT_EQ(host.list()[0].fault,
            "GID 2 of port 1 of fake0 (NCCL_IB_GID_INDEX) belongs to another network namespace "
            "(another container); remove it, and one is chosen");
  host.variables.gid_index = 3;
  EXPECT_EQ(host.list()[0].fault, "");
}

TEST(PortAddress, AGidWhoseTypeNobodyTellsIsTakenAtTheConfigsWord) {
  test::FakeDeviceSpec spec = roce_device("fake9", 1);
  FakeHost host({spec, roce_device("fake1", 2)}, 1);
  host.fabric.nics[0] = nic_on("fake9");
  EXPECT_THAT(host.list()[0].fault, HasSubstr("has no GID that can be used"));
  host.fabric.nics[0].gid_index = 3;
  EXPECT_EQ(host.list()[0].fault, "");
}

TEST(PortAddress, AnIndexBeyondWhatAQueuePairTakesIsRefused) {
  std::vector<ibv_gid> gids(300);
  gids[257] = ipv4_gid(5);
  FakeHost host = host_with(std::move(gids));
  host.tree.add_file(std::string(kTypes) + "257", "RoCE v2\n");
  EXPECT_THAT(host.list()[0].fault, HasSubstr("has no GID that can be used"));
  host.fabric.nics[0].gid_index = 257;
  EXPECT_THAT(host.list()[0].fault,
              HasSubstr("GID 257 of port 1 of fake0 (gid_index of the config) "
                        "is beyond 255, the last index"));
}

TEST(PortAddress, OfInfiniBandIsThatWithAForwardingLid) {
  test::FakeDeviceSpec spec = roce_device("fake0", 1);
  spec.ports[0].link_layer = IBV_LINK_LAYER_INFINIBAND;
  spec.ports[0].gids = {gid_of(0xfe80'0000'0000'0000, 7), gid_of(0xfec0'0000'0012'0003, 7)};
  FakeHost host({spec, roce_device("fake1", 2)}, 1);
  EXPECT_EQ(host.list()[0].address.gid.index, 1);
  host.variables.gid_wish.flid_index = 0;
  EXPECT_EQ(host.list()[0].address.gid.index, 0);
}

}  // namespace
}  // namespace ztcp::verbs
