// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/sockets/kernel/congestion_choice.h"

#include <gtest/gtest.h>

#include "transport/sockets/kernel/socket.h"

namespace ztcp::sockets {
namespace {

Device device_with(const std::string& congestion_control) {
  Device device;
  device.address = Ipv4Address{0x7f000001};
  device.congestion_control = congestion_control;
  return device;
}

// Every kernel has reno and allows it.
TEST(CongestionChoice, SocketsHaveTheDevices) {
  const Device device = device_with("reno");
  EXPECT_EQ(congestion_refusal(device), "");
  const auto listener = open_listener(device);
  ASSERT_TRUE(listener);
  EXPECT_EQ(congestion_control_of(listener->fd), "reno");
  const auto dialled = dial(device, {}, listener->endpoint);
  ASSERT_TRUE(dialled);
  EXPECT_EQ(congestion_control_of(*dialled), "reno");
  auto accepted = accept(listener->fd, {});
  ASSERT_TRUE(accepted && *accepted);
  EXPECT_EQ(congestion_control_of((*accepted)->fd), "reno") << "inherited";
}

TEST(CongestionChoice, EmptyIsTheKernels) {
  EXPECT_EQ(congestion_refusal(device_with("")), "");
  const auto listener = open_listener(device_with(""));
  ASSERT_TRUE(listener);
  EXPECT_NE(congestion_control_of(listener->fd), "");
}

TEST(CongestionChoice, RefusalNamesTheValueTheListAndTheCommand) {
  const std::string refusal = congestion_refusal(device_with("nosuch"));
  EXPECT_NE(refusal.find("tcp.kernel_congestion_control = \"nosuch\""), std::string::npos)
      << refusal;
  EXPECT_NE(refusal.find("/proc/sys/net/ipv4/tcp_allowed_congestion_control"), std::string::npos);
  EXPECT_NE(refusal.find("sysctl -w net.ipv4.tcp_allowed_congestion_control="), std::string::npos);
  EXPECT_NE(refusal.find("nosuch\", as root"), std::string::npos);
}

}  // namespace
}  // namespace ztcp::sockets
