// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// NCCL's property structures arrive uninitialised: every field of every version must be written.
#include <cstring>

#include <gtest/gtest.h>

#include "plugin/abi/common.h"
#include "plugin/net.h"
#include "tests/support/log_capture.h"
#include "tests/support/memory_transport.h"

namespace ztcp::plugin {

// The adapters' Net, over memory.
Net& net() {
  static Net* const instance = new Net([](bool) -> Told<Startup> {
    DeviceProperties device;
    device.name = "ztcp0";
    device.pci_path = "/sys/devices/pci0000:3a/0000:3b:00.0";
    device.guid = 0x0123456789abcdef;
    device.speed_mbps = 100000;
    device.port = 3;
    device.latency_us = 2.5F;
    device.max_comms = 777;
    device.max_receives = 1;
    DeviceProperties second = device;
    second.name = "ztcp1";
    DeviceProperties pathless;
    pathless.name = "ztcp2";
    Startup startup;
    startup.transports.push_back(
        std::make_unique<test::MemoryTransport>(std::vector{device, second, pathless}));
    Transport* const transport = startup.transports[0].get();
    startup.devices = {
        {device, transport, 0, {}}, {second, transport, 1, {}}, {pathless, transport, 2, {}}};
    return startup;
  });
  return *instance;
}

namespace abi {
namespace {

template <class P>
P ask(ncclResult_t (*get)(int, P*), int device, int garbage) {
  P properties;
  std::memset(&properties, garbage, sizeof properties);
  EXPECT_EQ(get(device, &properties), ncclSuccess);
  return properties;
}

// Calls it with several kinds of garbage: an unwritten field keeps one of them.
template <class P>
void expect_common(ncclResult_t (*get)(int, P*)) {
  for (const int garbage : {0x00, 0xa5, 0xff}) {
    const P p = ask(get, 0, garbage);
    EXPECT_STREQ(p.name, "ztcp0");
    EXPECT_STREQ(p.pciPath, "/sys/devices/pci0000:3a/0000:3b:00.0");
    EXPECT_EQ(p.guid, 0x0123456789abcdefU);
    EXPECT_EQ(p.ptrSupport, NCCL_PTR_HOST);
    EXPECT_EQ(p.speed, 100000);
    EXPECT_EQ(p.port, 3);
    EXPECT_EQ(p.maxComms, 777);
    if constexpr (requires { p.maxRecvs; }) {
      EXPECT_EQ(p.latency, 2.5F);
      EXPECT_EQ(p.maxRecvs, 1);
    }
    if constexpr (requires { p.netDeviceType; }) {
      EXPECT_EQ(p.netDeviceType, NCCL_NET_DEVICE_HOST);
      EXPECT_EQ(p.netDeviceVersion, 0);
    }
    if constexpr (requires { p.regIsGlobal; }) {
      EXPECT_EQ(p.regIsGlobal, 0);
    }
    if constexpr (requires { p.vProps; }) {
      EXPECT_EQ(p.forceFlush, 0);
      EXPECT_EQ(p.vProps.ndevs, 1);
      for (const int d : p.vProps.devs) EXPECT_EQ(d, 0);
      EXPECT_EQ(p.maxP2pBytes, std::size_t{1} << 30U);
      EXPECT_EQ(p.maxCollBytes, std::size_t{1} << 30U);
    }
    if constexpr (requires { p.maxMultiRequestSize; }) {
      EXPECT_EQ(p.maxMultiRequestSize, 1);
    }
    if constexpr (requires { p.railId; }) {
      EXPECT_EQ(p.railId, NCCL_NET_ID_UNDEF);
      EXPECT_EQ(p.planeId, NCCL_NET_ID_UNDEF);
    }
  }
}

class Properties : public testing::Test {
 protected:
  void SetUp() override { ASSERT_TRUE(net().init()); }
};

TEST_F(Properties, EveryFieldOfV3IsWritten) { expect_common(get_properties_v3); }
TEST_F(Properties, EveryFieldOfV5IsWritten) { expect_common(get_properties_v5); }
TEST_F(Properties, EveryFieldOfV7IsWritten) { expect_common(get_properties_v7); }
TEST_F(Properties, EveryFieldOfV8IsWritten) { expect_common(get_properties_v8); }
TEST_F(Properties, EveryFieldOfV9IsWritten) { expect_common(get_properties_v9); }
TEST_F(Properties, EveryFieldOfV11IsWritten) { expect_common(get_properties_v11); }
TEST_F(Properties, EveryFieldOfV12IsWritten) { expect_common(get_properties_v12); }

TEST_F(Properties, ADeviceNamesItselfAsItsOnlyPart) {
  EXPECT_EQ(ask(get_properties_v12, 1, 0xff).vProps.devs[0], 1);
}

TEST_F(Properties, AMergedDeviceNamesItsParts) {
  ASSERT_EQ(net().device_count().value(), 3);
  ncclNetVDeviceProps_v9_t wanted{.ndevs = 2, .devs = {1, 0}};
  int made = -1;
  ASSERT_EQ(make_vdevice_v9(&made, &wanted), ncclSuccess);
  EXPECT_EQ(made, 3);
  const auto v11 = ask(get_properties_v11, 3, 0xff);
  EXPECT_EQ(v11.vProps.ndevs, 2);
  EXPECT_EQ(v11.vProps.devs[0], 1);
  EXPECT_EQ(v11.vProps.devs[1], 0);
  EXPECT_STREQ(v11.name, "ztcp1+ztcp0");
  ncclNetVDeviceProps_v12_t again{.ndevs = 2, .devs = {0, 1}};
  ASSERT_EQ(make_vdevice_v12(&made, &again), ncclSuccess);
  EXPECT_EQ(made, 4);
  EXPECT_EQ(ask(get_properties_v12, 4, 0xff).vProps.devs[1], 1);
  ncclNetVDeviceProps_v9_t alone{.ndevs = 1, .devs = {1}};
  ASSERT_EQ(make_vdevice_v9(&made, &alone), ncclSuccess);
  EXPECT_EQ(ask(get_properties_v9, 5, 0xff).vProps.devs[0], 1);
  made = 4;
  again.ndevs = 9;
  EXPECT_EQ(make_vdevice_v12(&made, &again), ncclInvalidArgument);
  again.ndevs = 0;
  EXPECT_EQ(make_vdevice_v12(&made, &again), ncclInvalidArgument);
  EXPECT_EQ(made, 4) << "written after success only";
}

TEST_F(Properties, WithoutAPciFunctionThePathIsNull) {
  EXPECT_EQ(ask(get_properties_v11, 2, 0xff).pciPath, nullptr);
}

TEST_F(Properties, AMissingDeviceIsAnError) {
  const test::LogCapture log;
  ncclNetProperties_v11_t properties;
  EXPECT_EQ(get_properties_v11(9, &properties), ncclInvalidArgument);
  EXPECT_EQ(log.warnings().size(), 1U);
}

}  // namespace
}  // namespace abi
}  // namespace ztcp::plugin
