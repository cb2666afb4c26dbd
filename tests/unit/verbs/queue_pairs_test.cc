// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/queue_pairs.h"

#include <array>
#include <cerrno>
#include <optional>
#include <vector>

#include "tests/unit/verbs/fake_host.h"

namespace ztcp::verbs {
namespace {

// Every state that a queue pair is told to take, as it was told.
std::vector<ibv_qp_attr> told_states;
int (*modify_for_real)(ibv_qp*, ibv_qp_attr*, int) = nullptr;

int modify_and_note(ibv_qp* qp, ibv_qp_attr* to, int mask) {
  told_states.push_back(*to);
  return modify_for_real(qp, to, mask);
}

// Joined with itself, which tells of another MTU where one is given.
std::vector<ibv_qp_attr> told_of(FakeHost& host, std::optional<ibv_mtu> mtu = {}) {
  std::vector<Device> devices = host.list();
  Api api = *host.devices.api();
  modify_for_real = api.modify_qp;
  api.modify_qp = modify_and_note;
  devices[0].opened->api = &api;
  told_states.clear();
  {
    auto made =
        QueuePairs::create(devices[0], devices[0].address, {.count = 1, .receive_depth = 1});
    EXPECT_TRUE(made) << made.error().reason;
    if (!made) return {};
    RailFacts facts;
    (*made)->tell(facts);
    if (mtu) facts.mtu = static_cast<std::uint8_t>(*mtu);
    EXPECT_TRUE((*made)->join(facts));
  }
  devices[0].opened->api = host.devices.api();
  return told_states;
}

TEST(QueuePairs, AreToldWhatTheConfigSays) {
  FakeHost host;
  config::Nic& nic = host.fabric.nics[0];
  nic.service_level = 5;
  nic.ack_timeout = 20;
  nic.retries = 3;
  nic.rnr_retries = 6;
  nic.pkey_index = 4;
  const auto steps = told_of(host);
  ASSERT_EQ(steps.size(), 3U) << "INIT, RTR and RTS";
  EXPECT_EQ(steps[0].pkey_index, 4);
  EXPECT_EQ(steps[1].ah_attr.sl, 5);
  EXPECT_EQ(steps[2].timeout, 20);
  EXPECT_EQ(steps[2].retry_cnt, 3);
  EXPECT_EQ(steps[2].rnr_retry, 6);
}

TEST(QueuePairs, AreToldWhatHoldsWhereNobodySaysAnything) {
  FakeHost host;
  const auto steps = told_of(host);
  ASSERT_EQ(steps.size(), 3U);
  EXPECT_EQ(steps[0].pkey_index, 0);
  EXPECT_EQ(steps[1].ah_attr.sl, 0);
  EXPECT_EQ(steps[2].timeout, 20);
  EXPECT_EQ(steps[2].retry_cnt, 7);
  EXPECT_EQ(steps[2].rnr_retry, 7) << "for ever";
  EXPECT_EQ(steps[0].qp_access_flags, static_cast<unsigned>(IBV_ACCESS_REMOTE_WRITE))
      << "a peer writes, and may not read";
}

// When the device refuses one of a list of receives, it has taken those before it: they come back.
TEST(QueuePairs, ReceivesThatWerePostedBeforeTheOneRefusedAreAwaited) {
  FakeHost host;
  const std::vector<Device> devices = host.list();
  const auto made =
      QueuePairs::create(devices[0], devices[0].address, {.count = 1, .receive_depth = 4});
  ASSERT_TRUE(made) << made.error().reason;
  host.devices.refuse("ibv_post_recv fake0", ENOMEM);
  EXPECT_FALSE((*made)->post_receives(0, 3));
  EXPECT_FALSE((*made)->is_drained());
  (*made)->abort();
  std::array<ibv_wc, 4> completions;
  ASSERT_EQ((*made)->poll(completions), 1);
  (*made)->took_receive();
  EXPECT_TRUE((*made)->is_drained());
}

// As the subnet manager gives them where it routes between subnets by forwarding LIDs.
constexpr std::uint64_t kRoutable = 0xfec0'0000'0012'0003;

test::FakeDeviceSpec infiniband_device(std::uint64_t prefix) {
  test::FakeDeviceSpec spec = roce_device("fake0", 1);
  spec.ports[0].link_layer = IBV_LINK_LAYER_INFINIBAND;
  spec.ports[0].lid = 7;
  spec.ports[0].gids = {gid_of(0xfe80'0000'0000'0000, 0x1111), gid_of(prefix, 0x1111)};
  return spec;
}

// The way to a peer of InfiniBand with that prefix.
ibv_ah_attr path_to(FakeHost& host, std::uint64_t prefix, std::uint16_t flid) {
  const std::vector<Device> devices = host.list();
  EXPECT_EQ(devices[0].fault, "");
  Api api = *host.devices.api();
  modify_for_real = api.modify_qp;
  api.modify_qp = modify_and_note;
  devices[0].opened->api = &api;
  told_states.clear();
  {
    auto made =
        QueuePairs::create(devices[0], devices[0].address, {.count = 1, .receive_depth = 1});
    RailFacts facts;
    (*made)->tell(facts);
    const ibv_gid gid = gid_of(prefix, 0x2222);
    std::copy(std::begin(gid.raw), std::end(gid.raw), facts.gid.begin());
    facts.lid = 9;
    facts.flid = flid;
    EXPECT_TRUE((*made)->join(facts));
  }
  devices[0].opened->api = host.devices.api();
  return told_states.at(1).ah_attr;
}

TEST(QueuePairs, OfOneInfiniBandSubnetGoByLid) {
  FakeHost host({infiniband_device(kRoutable)}, 1);
  host.fabric.nics = {nic_on("fake0")};
  const ibv_ah_attr path = path_to(host, 0xfec0'0000'0044'0003, 0x44);
  EXPECT_EQ(path.dlid, 9);
  EXPECT_EQ(path.is_global, 0) << "a forwarding LID makes no other subnet";
}

TEST(QueuePairs, OfTwoInfiniBandSubnetsGoByForwardingLid) {
  FakeHost host({infiniband_device(kRoutable)}, 1);
  host.fabric.nics = {nic_on("fake0")};
  const ibv_ah_attr path = path_to(host, 0xfec0'0000'0044'0004, 0x44);
  EXPECT_EQ(path.dlid, 0x44);
  EXPECT_EQ(path.is_global, 1);
  EXPECT_EQ(path.grh.sgid_index, 1);
  EXPECT_EQ(path.grh.hop_limit, 255);
  EXPECT_EQ(path_to(host, 0xfec0'0000'0000'0004, 0).dlid, 9) << "where the peer has none";
}

TEST(QueuePairs, TellOfTheirForwardingLidAndOfTheVersionOfRoce) {
  FakeHost host({infiniband_device(kRoutable), roce_device("fake1", 2)}, 1);
  const std::vector<Device> devices = host.list();
  const auto told_by = [](const Device& device) {
    RailFacts facts;
    (*QueuePairs::create(device, device.address, {.count = 1, .receive_depth = 1}))->tell(facts);
    return facts;
  };
  EXPECT_EQ(told_by(devices[0]).flid, 0x12);
  EXPECT_EQ(told_by(devices[0]).gid_type, 0);
  EXPECT_EQ(told_by(devices[1]).flid, 0);
  EXPECT_EQ(told_by(devices[1]).gid_type, RailFacts::kRoceV2);
}

TEST(QueuePairs, OfTwoMtusTakeTheSmaller) {
  FakeHost host;
  EXPECT_EQ(told_of(host, IBV_MTU_1024).at(1).path_mtu, IBV_MTU_1024) << "the peer's";
  test::FakeDeviceSpec small = roce_device("fake0", 1);
  small.ports[0].mtu = IBV_MTU_1024;
  FakeHost small_host({small, roce_device("fake1", 2)}, 1);
  EXPECT_EQ(told_of(small_host, IBV_MTU_4096).at(1).path_mtu, IBV_MTU_1024) << "ours";
}

}  // namespace
}  // namespace ztcp::verbs
