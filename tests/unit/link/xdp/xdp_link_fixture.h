// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// An AF_XDP link on one end of a veth, in a network namespace that the tests make for themselves;
// frames enter and are read at the other end through a packet socket.
#pragma once

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <memory>
#include <net/if.h>
#include <netinet/in.h>
#include <sched.h>
#include <string>
#include <sys/socket.h>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "core/fd.h"
#include "tests/support/log_capture.h"
#include "tests/unit/link/frames.h"
#include "tests/unit/link/within_seconds.h"
#include "transport/link/xdp_link.h"
#include "transport/wire/byte_order.h"

namespace ztcp::link::test {

inline constexpr Ipv4Address kOwn{0x0a630801};   // 10.99.8.1
inline constexpr Ipv4Address kPeer{0x0a630802};  // 10.99.8.2
inline constexpr MacAddress kPeerMac{{0x02, 0, 0, 0, 0, 0x62}};
inline constexpr std::uint16_t kListenPort = 7471;

inline bool run(const std::string& command) {
  return std::system((command + " 2>&1").c_str()) == 0;
}

inline std::vector<std::byte> segment(std::uint32_t seed, std::size_t frame_bytes,
                                      std::uint16_t to_port = kListenPort) {
  std::vector<std::byte> frame(frame_bytes);
  for (std::size_t i = 0; i < frame_bytes; ++i) frame[i] = test::pattern(seed, i);
  std::byte* const p = frame.data();
  std::memset(p, 0xff, 6);
  wire::store_be16(p + 12, 0x0800);
  wire::store_u8(p + 14, 0x45);
  wire::store_be16(p + 16, static_cast<std::uint16_t>(frame_bytes - 14));
  wire::store_be16(p + 20, 0x4000);
  wire::store_u8(p + 23, 6);
  wire::store_be32(p + 30, kOwn.value);
  wire::store_be16(p + 36, to_port);
  return frame;
}

// A frame out of `bytes`, in `fragments` pieces; both live as long as it is used.
struct Outgoing {
  Outgoing(const std::vector<std::byte>& whole, std::size_t fragments) : bytes(whole) {
    constexpr std::size_t kHeaders = 54;
    std::copy_n(bytes.begin(), kHeaders, frame.header.begin());
    frame.header_bytes = kHeaders;
    frame.l2_bytes = 14;
    frame.l3_bytes = 20;
    frame.payload_bytes = static_cast<std::uint32_t>(bytes.size() - kHeaders);
    std::size_t at = kHeaders;
    for (std::size_t i = 0; i < fragments; ++i) {
      const std::size_t size =
          i + 1 == fragments ? bytes.size() - at : frame.payload_bytes / fragments;
      frame.fragments[i] = {bytes.data() + at, static_cast<std::uint32_t>(size), kUnmapped};
      at += size;
    }
    frame.fragment_count = static_cast<std::uint8_t>(fragments);
  }
  std::vector<std::byte> bytes;
  TxFrame frame;
};

class XdpLinkTest : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    // The whole test process moves: nothing of the machine's own network is touched.
    namespace_made_ = unshare(CLONE_NEWNET) == 0;
  }

  void SetUp() override {
    if (!namespace_made_) GTEST_SKIP() << "a network namespace of our own needs root";
    const Fd probe(::socket(AF_XDP, SOCK_RAW | SOCK_CLOEXEC, 0));
    if (!probe) GTEST_SKIP() << "no AF_XDP here: " << std::strerror(errno);
    const std::string queues =
        "numrxqueues " + std::to_string(queues_) + " numtxqueues " + std::to_string(queues_);
    if (!run("ip link add zx0 " + queues + " type veth peer name zx1 " + queues))
      GTEST_SKIP() << "no ip, or no veth";
    ASSERT_TRUE(run("ip link set zx1 address 02:00:00:00:00:62 up"));
    ASSERT_TRUE(run("ip link set zx0 up"));
    ASSERT_TRUE(run("ip address add 10.99.8.1/24 dev zx0"));
    packet_ = Fd(socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, htons(ETH_P_IP)));
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(ETH_P_IP);
    address.sll_ifindex = static_cast<int>(if_nametoindex("zx1"));
    ASSERT_EQ(bind(packet_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }
  void TearDown() override {
    links_.clear();
    if (namespace_made_) run("ip link delete zx0 >/dev/null");
  }

  static XdpConfig config(std::uint16_t mtu_bytes = 1500) {
    XdpConfig out;
    out.interface = "zx0";
    out.address = kOwn;
    out.listen_port = kListenPort;
    out.first_port = 61000;
    out.last_port = 65535;
    out.mtu_bytes = mtu_bytes;
    return out;
  }
  void open(const XdpConfig& wanted) {
    if (wanted.mtu_bytes != 1500) {
      const std::string mtu = std::to_string(wanted.mtu_bytes);
      ASSERT_TRUE(run("ip link set zx1 mtu " + mtu) && run("ip link set zx0 mtu " + mtu));
    }
    auto opened = open_xdp(wanted);
    ASSERT_TRUE(opened) << opened.error().where << " " << opened.error().sys_errno;
    links_ = std::move(*opened);
    ASSERT_TRUE(within_seconds(5, [&] { return link().is_up(); }));
  }
  // The log of an attempt that fails.
  std::string refusal(const XdpConfig& wanted) {
    const ztcp::test::LogCapture log;
    const auto opened = open_xdp(wanted);
    EXPECT_FALSE(opened);
    return log.warned();
  }

  Link& link() { return *links_.front(); }
  void inject(const std::vector<std::byte>& frame) {
    ASSERT_EQ(::send(packet_.get(), frame.data(), frame.size(), 0),
              static_cast<ssize_t>(frame.size()))
        << std::strerror(errno);
  }
  std::vector<std::byte> receive_one() {
    RxFrame frame;
    if (!within_seconds(5, [&] { return link().receive({&frame, 1}) == 1; })) return {};
    auto bytes = flatten(frame);
    link().release({&frame, 1});
    return bytes;
  }
  // Leaves out what the kernel itself sends.
  std::vector<std::byte> sent_one() {
    std::vector<std::byte> bytes(10000);
    ssize_t size = -1;
    within_seconds(5, [&] {
      size = ::recv(packet_.get(), bytes.data(), bytes.size(), 0);
      return size > 23 && wire::load_u8(bytes.data() + 23) == 6;
    });
    bytes.resize(static_cast<std::size_t>(std::max<ssize_t>(size, 0)));
    return bytes;
  }

  std::vector<std::unique_ptr<Link>> links_;
  unsigned queues_ = 1;
  std::uint16_t processes_ = 1;
  Fd packet_;

 private:
  static inline bool namespace_made_ = false;
};

}  // namespace ztcp::link::test
