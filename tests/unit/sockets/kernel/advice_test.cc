// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/sockets/kernel/advice.h"

#include <cerrno>
#include <vector>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ztcp::sockets {
namespace {

using testing::HasSubstr;

TEST(ListenAdvice, ForTakenPortsNamesTheRangeAndTheFile) {
  Device device;
  device.first_port = 7472;
  device.last_port = 7473;
  EXPECT_THAT(listen_advice({Errc::kBusy, EADDRINUSE, "bind"}, device, "/etc/ztcp.conf"),
              HasSubstr("takes a port of 7472-7473: widen first_port and last_port in "
                        "/etc/ztcp.conf"));
  // Without a config the kernel chooses the port, and has none left.
  EXPECT_THAT(listen_advice({Errc::kBusy, EADDRINUSE, "bind"}, Device{}, ""),
              HasSubstr("sysctl -w net.ipv4.ip_local_port_range="));
}

// Kernels before 5.7 require a privilege.
TEST(ListenAdvice, ForARefusedBindToAnInterfaceNamesThePrivilege) {
  Device device;
  device.interface = "eth1";
  const std::string advice = listen_advice({Errc::kSystem, EPERM, "SO_BINDTODEVICE"}, device, "");
  EXPECT_THAT(advice, HasSubstr("in the network of eth1"));
  EXPECT_THAT(advice, HasSubstr("CAP_NET_RAW"));
  EXPECT_EQ(listen_advice({Errc::kSystem, ENODEV, "SO_BINDTODEVICE"}, device, ""), "");
  EXPECT_EQ(listen_advice({Errc::kSystem, EPERM, "bind"}, device, ""), "");
}

TEST(ResourceAdvice, NamesTheLimitOfTheMissingResource) {
  struct Row {
    int sys_errno;
    const char* advice;
  };
  for (const auto& [sys_errno, advice] :
       {Row{EMFILE, "raise ulimit -n"}, Row{ENFILE, "fs.file-max"}, Row{ENOMEM, "no memory"},
        Row{ENOSPC, "fs.epoll.max_user_watches"}, Row{EAGAIN, "raise ulimit -u"},
        Row{EPERM, "seccomp"}, Row{ENOSYS, "seccomp"}})
    EXPECT_THAT(resource_advice(sys_errno), HasSubstr(advice));
  EXPECT_EQ(resource_advice(EINVAL), "");
  EXPECT_THAT(listen_advice({Errc::kOutOfMemory, EMFILE, "socket"}, {}, ""),
              HasSubstr("raise ulimit -n"));
}

TEST(InterfaceAdvice, NamesTheInterfaceAndTheCommand) {
  EXPECT_EQ(interface_advice(InterfaceState::kUp, "eth0"), "");
  EXPECT_EQ(interface_advice(InterfaceState::kSetDown, "eth0"),
            "eth0 of this host is down: ip link set dev eth0 up");
  EXPECT_NE(interface_advice(InterfaceState::kNoCarrier, "eth0").find("no carrier"),
            std::string::npos);
  EXPECT_NE(interface_advice(InterfaceState::kMissing, "eth0").find("is gone"), std::string::npos);
}

// The host may have no config file.
TEST(FailureAdvice, NamesCommandsAndNoConfigFile) {
  Device device;
  device.interface = "eth0";
  device.mtu_bytes = 9000;
  EXPECT_NE(failure_advice(Errc::kNoRoute, device).find("ip route get"), std::string::npos);
  EXPECT_NE(failure_advice(Errc::kPathMtu, device).find("eth0 has an MTU of 9000 bytes"),
            std::string::npos);
  for (const Errc code : {Errc::kNoRoute, Errc::kPathMtu})
    EXPECT_EQ(failure_advice(code, device).find("ztcp.conf"), std::string::npos);
  EXPECT_EQ(failure_advice(Errc::kRefused, device), "");
}

// EADDRNOTAVAIL means a missing address from bind(), and a lack of ports from connect().
TEST(Shortage, MissingAddressIsToldFromALackOfPorts) {
  Device device;
  device.interface = "eth1";
  device.address = Ipv4Address{0x0a090901};
  const auto of = [&](const char* where) {
    return shortage({Errc::kNoRoute, EADDRNOTAVAIL, where}, device);
  };
  EXPECT_THAT(of("bind"), HasSubstr("10.9.9.1 is no address of this machine any more"));
  EXPECT_THAT(of("bind"), HasSubstr("is eth1 still there"));
  EXPECT_THAT(of("connect"), HasSubstr("no port is left on 10.9.9.1"));
  EXPECT_THAT(listen_advice({Errc::kNoRoute, EADDRNOTAVAIL, "bind"}, device, ""),
              HasSubstr("no interface of this machine has that address now"));
  EXPECT_EQ(shortage({Errc::kRefused, ECONNREFUSED, "connect"}, device), "");
}

TEST(AddressAdvice, SaysWhyAnExistingAddressCantBeBound) {
  LocalAddress one{.interface = "v0", .prefix = *parse_ip_prefix("fd66::9/64")};
  const auto advice = [&](const char* address) {
    return address_advice(*parse_ip(address), std::span(&one, 1));
  };
  EXPECT_THAT(advice("fd66::1"), HasSubstr("no interface of this machine has that address now"));
  one.state = AddressState::kDuplicate;
  EXPECT_THAT(advice("fd66::9"),
              HasSubstr("v0 has that address, but another host of its link has it, too"));
  one.state = AddressState::kTentative;
  EXPECT_THAT(advice("fd66::9"), HasSubstr("start again in two seconds"));
}

// Loopback, and bridges that have the same address on every host of a cluster.
TEST(OwnAddressAdvice, NamesAnAddressOfThisHost) {
  const std::vector<LocalAddress> all{
      {.interface = "lo", .prefix = *parse_ip_prefix("127.0.0.1/8")},
      {.interface = "br-3f2a", .prefix = *parse_ip_prefix("172.18.0.1/16")}};
  const auto advice = [&](const char* address) {
    return own_address_advice(*parse_ip(address), all);
  };
  EXPECT_THAT(advice("172.18.0.1"),
              HasSubstr("172.18.0.1 is an address of this host itself (br-3f2a)"));
  EXPECT_THAT(advice("127.0.0.1"), HasSubstr("if the peer is on another host, name an interface "
                                             "whose address is its own on each host by "
                                             "NCCL_SOCKET_IFNAME"));
  EXPECT_THAT(advice("127.0.0.2"), HasSubstr("127.0.0.2 is an address of this host itself: "));
  EXPECT_EQ(advice("172.18.0.2"), "");
}

TEST(PortsText, NamesTheRangeOrThePortThatTheKernelChose) {
  Device device;
  device.address = Ipv4Address{0x0a000001};
  EXPECT_EQ(ports_text(device, {device.address, 40001}), "port 40001 of 10.0.0.1");
  device.first_port = 7001;
  device.last_port = 7008;
  EXPECT_EQ(ports_text(device, {device.address, 7003}), "ports 7001-7008 of 10.0.0.1");
}

}  // namespace
}  // namespace ztcp::sockets
