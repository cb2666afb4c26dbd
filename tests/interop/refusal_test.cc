// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Refusals of a kernel's connect: by the peer's TCP, or by a firewall in its place.
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <poll.h>
#include <sys/socket.h>

#include "tests/interop/tap_test.h"
#include "transport/sockets/kernel/socket.h"
#include "transport/wire/checksum.h"
#include "transport/wire/frame_parser.h"
#include "transport/wire/ipv4.h"

namespace ztcp::interop {
namespace {

class RefusalTap : public TapTest {
 protected:
  // The error of a connect to us.
  Error dial() {
    sockets::Device device;
    device.interface = kInterface;
    device.address = kKernelAddress.address;
    const auto fd = sockets::dial(device, {}, kOurPort);
    if (!fd) return fd.error();
    EXPECT_TRUE(run_until([&] {
      pollfd ready{.fd = fd->get(), .events = POLLOUT, .revents = 0};
      return poll(&ready, 1, 0) == 1;
    }));
    int sys_errno = 0;
    socklen_t size = sizeof sys_errno;
    EXPECT_EQ(getsockopt(fd->get(), SOL_SOCKET, SO_ERROR, &sys_errno, &size), 0);
    return sockets::connect_error(*fd, sys_errno);
  }

  // RFC 792: with the packet's IP header, and 8 bytes behind it.
  static void reject(const Fd& socket, const sim::Bytes& frame) {
    const auto quoted = std::span(frame).subspan(wire::kEthernetBytes, 28);
    sim::Bytes message(sizeof(icmphdr));
    message[0] = std::byte{ICMP_DEST_UNREACH};
    message[1] = std::byte{ICMP_PORT_UNREACH};
    message.insert(message.end(), quoted.begin(), quoted.end());
    wire::store_be16(message.data() + 2, wire::internet_checksum(message));
    sockaddr_in to{};
    to.sin_family = AF_INET;
    to.sin_addr.s_addr = htonl(kKernelAddress.address.value);
    EXPECT_EQ(sendto(socket.get(), message.data(), message.size(), 0,
                     reinterpret_cast<const sockaddr*>(&to), sizeof to),
              static_cast<ssize_t>(message.size()));
  }
};

TEST_F(RefusalTap, ThePeersTcpRefusesWithAReset) {
  open();
  const Error error = dial();
  EXPECT_EQ(error.code, Errc::kRefused);
  EXPECT_EQ(error.sys_errno, ECONNREFUSED);
}

// As iptables' REJECT and nft's reject do: the sender gets "port unreachable" before the peer can
// answer.
TEST_F(RefusalTap, AFirewallsRejectIsNotTakenForThePeersAnswer) {
  const Fd socket(::socket(AF_INET, SOCK_RAW | SOCK_CLOEXEC, IPPROTO_ICMP));
  ASSERT_TRUE(socket);
  ASSERT_TRUE(configure_interface("lo", {Ipv4Address{0x7f000001}, 8}));
  open_cable({}).observe([&](bool outgoing, const sim::Bytes& bytes) {
    RxFrame view;
    view.head = bytes;
    if (!outgoing && wire::parse_frame(view).kind == wire::FrameKind::kTcp) reject(socket, bytes);
  });
  const KernelCounters counters;
  const Error error = dial();
  EXPECT_EQ(counters["IcmpInDestUnreachs"], 1U);
  EXPECT_EQ(error.code, Errc::kNoRoute);
  EXPECT_EQ(error.sys_errno, ECONNREFUSED);
  EXPECT_STREQ(error.where, "connect: rejected by ICMP, as firewalls do");
}

}  // namespace
}  // namespace ztcp::interop
