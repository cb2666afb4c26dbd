// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/verbs/open_devices.h"

#include <cerrno>

#include <gmock/gmock.h>

#include "tests/unit/verbs/fake_host.h"

namespace ztcp::verbs {
namespace {

using testing::HasSubstr;

std::string fault_with(int sys_errno) {
  test::FakeDeviceSpec spec = roce_device("fake0", 1);
  spec.may_open = false;
  spec.open_errno = sys_errno;
  const test::FakeFabric devices({spec});
  const DeviceList list(*devices.api());
  const Opened opened = open_device(*devices.api(), list.find("fake0"));
  return opened ? "" : opened.error();
}

TEST(OpenDevice, OneWithoutItsNodeIsToldHowAContainerGetsIt) {
  EXPECT_THAT(fault_with(ENOENT), HasSubstr("/dev/infiniband/uverbs* is not here: start the "
                                            "container with --device /dev/infiniband"));
  EXPECT_THAT(fault_with(EACCES), HasSubstr("this user needs /dev/infiniband/uverbs*"));
  EXPECT_THAT(fault_with(EIO), HasSubstr("fake0 can't be opened: Input/output error"));
}

TEST(DeviceList, FindsByNameAndNamesAll) {
  const test::FakeFabric devices({roce_device("fake0", 1), roce_device("fake1", 2)});
  const DeviceList list(*devices.api());
  EXPECT_STREQ(list.find("fake1")->name, "fake1");
  EXPECT_EQ(list.find("mlx5_0"), nullptr);
  EXPECT_EQ(list.names(), "fake0, fake1");
}

TEST(KindOfDevice, IsOneThatHasReliableConnections) {
  const auto fault = [](ibv_transport_type transport, std::uint8_t link_layer) {
    ibv_device device{};
    device.transport_type = transport;
    ibv_port_attr attr{};
    attr.link_layer = link_layer;
    return fault_of_kind(device, 1, attr);
  };
  EXPECT_EQ(fault(IBV_TRANSPORT_IB, IBV_LINK_LAYER_INFINIBAND), "");
  EXPECT_EQ(fault(IBV_TRANSPORT_IB, IBV_LINK_LAYER_ETHERNET), "");
  EXPECT_EQ(fault(IBV_TRANSPORT_IWARP, IBV_LINK_LAYER_ETHERNET), "");
  EXPECT_NE(fault(IBV_TRANSPORT_UNSPECIFIED, IBV_LINK_LAYER_UNSPECIFIED), "") << "EFA";
  EXPECT_NE(fault(IBV_TRANSPORT_USNIC_UDP, IBV_LINK_LAYER_ETHERNET), "") << "usNIC";
  EXPECT_NE(fault(IBV_TRANSPORT_IB, IBV_LINK_LAYER_UNSPECIFIED), "");
}

}  // namespace
}  // namespace ztcp::verbs
