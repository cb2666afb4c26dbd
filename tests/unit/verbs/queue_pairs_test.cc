// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/queue_pairs.h"

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
    EXPECT_TRUE(made) << made.error().text;
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
  EXPECT_EQ(steps[2].timeout, 18);
  EXPECT_EQ(steps[2].retry_cnt, 7);
  EXPECT_EQ(steps[2].rnr_retry, 7) << "for ever";
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
