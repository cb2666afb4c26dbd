// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/sockets/socket.h"

#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ztcp::sockets {
namespace {

using testing::HasSubstr;

TEST(ListenAdvice, OfPortsNamesTheRangeAndTheFile) {
  Device device;
  device.first_port = 7472;
  device.last_port = 7473;
  EXPECT_THAT(listen_advice({Errc::kBusy, EADDRINUSE, "bind"}, device, "/etc/ztcp.conf"),
              HasSubstr("takes a port of 7472-7473: widen first_port and last_port in "
                        "/etc/ztcp.conf"));
  // Without a config the kernel chooses, and has none left.
  EXPECT_THAT(listen_advice({Errc::kBusy, EADDRINUSE, "bind"}, Device{}, ""),
              HasSubstr("sysctl -w net.ipv4.ip_local_port_range="));
}

// Kernels before 5.7 want a privilege for it.
TEST(ListenAdvice, OfBindingToAnInterfaceNamesThePrivilege) {
  Device device;
  device.interface = "eth1";
  const std::string advice = listen_advice({Errc::kSystem, EPERM, "SO_BINDTODEVICE"}, device, "");
  EXPECT_THAT(advice, HasSubstr("in the network of eth1"));
  EXPECT_THAT(advice, HasSubstr("CAP_NET_RAW"));
  EXPECT_EQ(listen_advice({Errc::kSystem, ENODEV, "SO_BINDTODEVICE"}, device, ""), "");
  EXPECT_EQ(listen_advice({Errc::kSystem, EPERM, "bind"}, device, ""), "");
}

}  // namespace
}  // namespace ztcp::sockets
