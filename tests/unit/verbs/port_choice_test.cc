// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/port_choice.h"

#include <gmock/gmock.h>

#include "tests/support/log_capture.h"
#include "tests/unit/verbs/fake_host.h"

namespace ztcp::verbs {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> names_of(const config::Fabric& fabric) {
  std::vector<std::string> names;
  for (const config::Nic& nic : fabric.nics) names.push_back(nic.name);
  return names;
}

TEST(PortChoice, WithoutAConfigTheActivePortsThatNcclMeansAreTaken) {
  test::FakeDeviceSpec down = roce_device("fake2", 3);
  down.ports[0].state = IBV_PORT_DOWN;
  const FakeHost host({roce_device("fake0", 1), roce_device("fake1", 2), down}, 1);
  const auto all = fabric_of(*host.devices.api(), {}, {}, loopback());
  ASSERT_TRUE(all);
  ASSERT_EQ(all->nics.size(), 2U);
  EXPECT_EQ(all->nics[0].name, "fake0");
  EXPECT_EQ(all->nics[0].driver, config::NicDriver::kVerbs);
  EXPECT_EQ(all->nics[0].address, loopback().prefix);

  NcclVariables variables;
  variables.devices_text = "=fake1";
  variables.devices = HcaFilter(variables.devices_text);
  const auto one = fabric_of(*host.devices.api(), {}, variables, loopback());
  ASSERT_TRUE(one);
  EXPECT_EQ(one->nics.size(), 1U);
  EXPECT_EQ(one->path, "NCCL_IB_HCA==fake1");

  variables.devices_text = "mlx5";
  variables.devices = HcaFilter(variables.devices_text);
  const auto none = fabric_of(*host.devices.api(), {}, variables, loopback());
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error(), HasSubstr("fits NCCL_IB_HCA=mlx5: fake0 (not meant), "));
  variables.devices = HcaFilter("=fake0:2,fake2");
  const auto other = fabric_of(*host.devices.api(), {}, variables, loopback());
  ASSERT_FALSE(other);
  EXPECT_THAT(other.error(), HasSubstr(": fake0 port 1 (not meant), fake1 (not meant), "));
  EXPECT_THAT(other.error(), HasSubstr("fake2 port 1 (not active)"));
}

TEST(PortChoice, AHostWithoutAnyIsToldSo) {
  const FakeHost host({}, 1);
  const auto none = fabric_of(*host.devices.api(), {}, {}, loopback());
  ASSERT_FALSE(none);
  EXPECT_EQ(none.error(), "this host has no RDMA device (ibv_devices lists none)");
}

// The job goes on over the others, slower than it was meant.
TEST(PortChoice, ADeviceThatMayNotBeOpenedIsWarnedOf) {
  const test::LogCapture log;
  test::FakeDeviceSpec closed = roce_device("fake1", 2);
  closed.may_open = false;
  const FakeHost host({roce_device("fake0", 1), closed}, 1);
  const auto found = fabric_of(*host.devices.api(), {}, {}, loopback());
  ASSERT_TRUE(found);
  EXPECT_THAT(names_of(*found), ElementsAre("fake0"));
  EXPECT_THAT(log.warned(), HasSubstr("no RDMA over fake1 can't be opened: Permission denied; "));

  NcclVariables variables;
  variables.devices_text = "fake0";
  variables.devices = HcaFilter(variables.devices_text);
  const std::size_t before = log.warnings().size();
  EXPECT_TRUE(fabric_of(*host.devices.api(), {}, variables, loopback()));
  EXPECT_EQ(log.warnings().size(), before) << "nobody wanted it";
}

TEST(PortChoice, OneWithoutReliableConnectionsIsLeftOutAndNamed) {
  const test::LogCapture log;
  test::FakeDeviceSpec efa = roce_device("fake0", 1);
  efa.transport = IBV_TRANSPORT_UNSPECIFIED;
  efa.ports[0].link_layer = IBV_LINK_LAYER_UNSPECIFIED;
  {
    const FakeHost host({efa, roce_device("fake1", 2)}, 1);
    const auto found = fabric_of(*host.devices.api(), {}, {}, loopback());
    ASSERT_TRUE(found);
    EXPECT_THAT(names_of(*found), ElementsAre("fake1"));
    EXPECT_THAT(log.warned(), HasSubstr("port 1 of fake0 is neither InfiniBand, RoCE nor iWARP"));
  }
  const FakeHost host({efa}, 1);
  const auto none = fabric_of(*host.devices.api(), {}, {}, loopback());
  ASSERT_FALSE(none);
  EXPECT_THAT(none.error(), HasSubstr("(as EFA and usNIC)"));
}

TEST(PortChoice, RailAndPlaneAreThoseThatTheVariableNames) {
  const FakeHost host;
  NcclVariables variables;
  variables.devices = HcaFilter("=fake0:1:2:3,fake1::4");
  const auto found = fabric_of(*host.devices.api(), {}, variables, loopback());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->nics[0].rail, 2);
  EXPECT_EQ(found->nics[0].plane, 3);
  EXPECT_EQ(found->nics[1].rail, 4);
  EXPECT_EQ(found->nics[1].plane, -1);
}

TEST(PortChoice, PortsStandInTheOrderOfTheirPciFunctions) {
  FakeHost host;
  host.tree.add(
      "pci path=pci0000:16/0000:97:00.0 id=15b3:101b class=020700 numa=0\n"
      "pci path=pci0000:16/0000:17:00.0 id=15b3:101b class=020700 numa=0\n"
      "link path=sys/class/infiniband/fake0/device to=../../../devices/pci0000:16/0000:97:00.0\n"
      "link path=sys/class/infiniband/fake1/device to=../../../devices/pci0000:16/0000:17:00.0\n");
  NcclVariables variables;
  const auto names = [&] {
    return names_of(
        *fabric_of(*host.devices.api(), {}, variables, loopback(), host.tree.root() + "/sys"));
  };
  EXPECT_THAT(names(), ElementsAre("fake1", "fake0"));
  variables.is_pci_ordered = false;
  EXPECT_THAT(names(), ElementsAre("fake0", "fake1"));
}

}  // namespace
}  // namespace ztcp::verbs
