// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/sockets/kernel/packet_class.h"

#include <array>
#include <linux/capability.h>
#include <netinet/in.h>
#include <string>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "transport/sockets/kernel/socket.h"

namespace ztcp::sockets {
namespace {

constexpr std::uint8_t kExpedited = 46;

Device device_at(IpAddress address, std::uint8_t dscp = 0) {
  Device device;
  device.address = address;
  device.dscp = dscp;
  return device;
}

// Those of the calling thread alone.
void drop_capabilities() {
  __user_cap_header_struct header{.version = _LINUX_CAPABILITY_VERSION_3, .pid = 0};
  std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3> none{};
  ASSERT_EQ(syscall(SYS_capset, &header, none.data()), 0);
}

int option(const Fd& fd, int level, int name) {
  int value = -1;
  socklen_t size = sizeof value;
  EXPECT_EQ(getsockopt(fd.get(), level, name, &value, &size), 0);
  return value;
}

class PacketClass : public testing::TestWithParam<bool> {
 protected:
  static IpAddress loopback() {
    return GetParam() ? IpAddress(Ipv4Address{0x7f000001}) : IpAddress(0, 1);
  }
  static int dscp_of(const Fd& fd) {
    return (GetParam() ? option(fd, IPPROTO_IP, IP_TOS) : option(fd, IPPROTO_IPV6, IPV6_TCLASS)) >>
           2;
  }
  static int priority_of(const Fd& fd) { return option(fd, SOL_SOCKET, SO_PRIORITY); }
};

TEST_P(PacketClass, BothEndsHaveTheirDevices) {
  const Listening listening = *open_listener(device_at(loopback(), 10));
  const Fd dialled = *dial(device_at(loopback(), kExpedited), {}, listening.endpoint);
  auto accepted = *accept(listening.fd, {}, 10);
  while (!accepted) accepted = *accept(listening.fd, {}, 10);
  EXPECT_EQ(dscp_of(dialled), kExpedited);
  EXPECT_EQ(priority_of(dialled), 5);
  EXPECT_EQ(dscp_of(accepted->fd), 10);
  EXPECT_EQ(priority_of(accepted->fd), 1);
}

TEST_P(PacketClass, IsUntouchedByDefault) {
  const Listening listening = *open_listener(device_at(loopback()));
  const Fd dialled = *dial(device_at(loopback()), {}, listening.endpoint);
  EXPECT_EQ(dscp_of(dialled), 0);
  EXPECT_EQ(priority_of(dialled), 0);
}

TEST_P(PacketClass, OfAConnectionWinsOverTheDevices) {
  const Listening listening = *open_listener(device_at(loopback()));
  const Fd dialled = *dial(device_at(loopback(), kExpedited), {}, listening.endpoint, {.dscp = 0});
  EXPECT_EQ(dscp_of(dialled), 0);
  EXPECT_EQ(priority_of(dialled), 0);
}

TEST_P(PacketClass, CanChange) {
  const Listening listening = *open_listener(device_at(loopback()));
  const Fd dialled = *dial(device_at(loopback()), {}, listening.endpoint);
  set_class(dialled, 26);
  EXPECT_EQ(dscp_of(dialled), 26);
  EXPECT_EQ(priority_of(dialled), 3);
}

TEST_P(PacketClass, ARefusalNamesTheValue) {
  EXPECT_EQ(class_refusal(device_at(loopback()), kExpedited), "");
  std::string refusal;
  std::thread([&] {
    drop_capabilities();
    refusal = class_refusal(device_at(loopback()), 56);
  }).join();
  EXPECT_EQ(refusal,
            "the kernel refuses priority 7 (SO_PRIORITY) for DSCP 56: Operation not permitted; "
            "packets have the DSCP alone; priority 7 needs CAP_NET_ADMIN");
}

INSTANTIATE_TEST_SUITE_P(Families, PacketClass, testing::Values(true, false),
                         [](const auto& row) { return row.param ? "IPv4" : "IPv6"; });

}  // namespace
}  // namespace ztcp::sockets
