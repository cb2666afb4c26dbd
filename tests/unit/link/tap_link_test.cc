// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A tap interface in a network namespace that this test makes for itself; the kernel's side is read
// and written through a packet socket, and answers TCP segments with RST.
#include "transport/link/tap_link.h"

#include <arpa/inet.h>
#include <array>
#include <cstring>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <net/if.h>
#include <net/if_arp.h>
#include <netinet/in.h>
#include <netinet/ip.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "core/fd.h"
#include "tests/unit/link/frames.h"
#include "tests/unit/link/kept.h"
#include "tests/unit/link/within_seconds.h"

namespace ztcp::link {
namespace {

using test::flatten;
using test::SentFrame;

constexpr MacAddress kOurMac{{0x02, 0, 0, 0, 0, 0x77}};
constexpr const char* kInterface = "ztcptest0";
constexpr const char* kKernelAddress = "10.99.7.1";
constexpr const char* kOurAddress = "10.99.7.2";

class Tap : public testing::Test {
 protected:
  static void SetUpTestSuite() {
    // The whole test process moves: nothing of the machine's own network is touched.
    namespace_made_ = unshare(CLONE_NEWNET) == 0;
  }

  void SetUp() override {
    if (!namespace_made_) GTEST_SKIP() << "a network namespace of our own needs root";
    if (access("/dev/net/tun", R_OK | W_OK) != 0) GTEST_SKIP() << "no /dev/net/tun here";
  }

  void open(std::uint16_t mtu_bytes, bool offloads = true, std::uint32_t rx_slots = 64) {
    TapConfig config;
    config.interface = kInterface;
    config.mac = kOurMac;
    config.mtu_bytes = mtu_bytes;
    config.offloads = offloads;
    config.rx_slots = rx_slots;
    auto opened = open_tap(config);
    ASSERT_TRUE(opened) << opened.error().where << " " << opened.error().sys_errno;
    link_ = std::move(*opened);
    EXPECT_FALSE(link_->is_up());
    set_address();
    EXPECT_TRUE(link_->is_up());
    packet_ = Fd(socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, htons(0x88b5)));
    sockaddr_ll address{};
    address.sll_family = AF_PACKET;
    address.sll_protocol = htons(0x88b5);
    address.sll_ifindex = static_cast<int>(if_nametoindex(kInterface));
    ASSERT_EQ(bind(packet_.get(), reinterpret_cast<sockaddr*>(&address), sizeof(address)), 0);
  }

  static void set_address() {
    const Fd control(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq request{};
    std::strcpy(request.ifr_name, kInterface);
    auto& address = reinterpret_cast<sockaddr_in&>(request.ifr_addr);
    address.sin_family = AF_INET;
    inet_pton(AF_INET, kKernelAddress, &address.sin_addr);
    ASSERT_EQ(ioctl(control.get(), SIOCSIFADDR, &request), 0);
    inet_pton(AF_INET, "255.255.255.0", &address.sin_addr);
    ASSERT_EQ(ioctl(control.get(), SIOCSIFNETMASK, &request), 0);
    request.ifr_flags = IFF_UP | IFF_RUNNING;
    ASSERT_EQ(ioctl(control.get(), SIOCSIFFLAGS, &request), 0);
    // Our side answers no ARP here, so the kernel gets a static entry.
    arpreq neighbour{};
    auto& peer = reinterpret_cast<sockaddr_in&>(neighbour.arp_pa);
    peer.sin_family = AF_INET;
    inet_pton(AF_INET, kOurAddress, &peer.sin_addr);
    std::memcpy(neighbour.arp_ha.sa_data, kOurMac.bytes.data(), kOurMac.bytes.size());
    neighbour.arp_flags = ATF_COM | ATF_PERM;
    std::strcpy(neighbour.arp_dev, kInterface);
    ASSERT_EQ(ioctl(control.get(), SIOCSARP, &neighbour), 0);
  }

  static MacAddress kernel_mac() {
    const Fd control(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
    ifreq request{};
    std::strcpy(request.ifr_name, kInterface);
    EXPECT_EQ(ioctl(control.get(), SIOCGIFHWADDR, &request), 0);
    MacAddress mac;
    std::memcpy(mac.bytes.data(), request.ifr_hwaddr.sa_data, mac.bytes.size());
    return mac;
  }

  // The next frame from the kernel that `wanted` accepts; the kernel also sends unsolicited ones
  // (neighbour discovery). Bounded.
  template <class Wanted>
  std::vector<std::byte> receive_if(const Wanted& wanted, bool* checksum_good = nullptr) {
    std::vector<std::byte> bytes;
    const bool found = test::within_seconds(2, [&] {
      std::array<RxFrame, 1> frame;
      if (link_->receive(frame) == 0) return false;
      bytes = flatten(frame[0]);
      if (checksum_good != nullptr) *checksum_good = frame[0].checksum_good;
      link_->release(frame);
      return static_cast<bool>(wanted(bytes));
    });
    return found ? bytes : std::vector<std::byte>{};
  }

  // Sends a TCP segment from our address to a port without a listener. Returns the kernel's answer.
  std::vector<std::byte> provoke_reset(std::size_t payload_bytes, std::uint16_t segment_size,
                                       bool* checksum_good);

  std::unique_ptr<Link> link_;
  Fd packet_;
  static inline bool namespace_made_ = false;
};

TEST_F(Tap, CarriesEverySizeBothWays) {
  open(9000);
  std::vector<std::byte> buffer(10000);
  for (std::size_t size = 60; size <= 9014; size += size < 300 || size > 8800 ? 1 : 37) {
    SentFrame sent(static_cast<std::uint32_t>(size), size, 1 + size % 8);
    ASSERT_EQ(link_->transmit({&sent.frame(), 1}), 1U);
    pollfd ready{packet_.get(), POLLIN, 0};
    ASSERT_EQ(poll(&ready, 1, 1000), 1) << size;
    ASSERT_EQ(recv(packet_.get(), buffer.data(), buffer.size(), 0), static_cast<ssize_t>(size));
    ASSERT_TRUE(std::equal(sent.bytes().begin(), sent.bytes().end(), buffer.begin())) << size;

    ASSERT_EQ(send(packet_.get(), sent.bytes().data(), size, 0), static_cast<ssize_t>(size));
    ASSERT_EQ(receive_if([&](const auto& bytes) { return bytes.size() == size; }), sent.bytes());
  }
  EXPECT_EQ(link_->counters().tx_dropped, 0U);
}

std::uint32_t sum16(const std::byte* bytes, std::size_t size, std::uint32_t sum = 0) {
  for (std::size_t i = 0; i < size; i += 2)
    sum += std::to_integer<std::uint32_t>(bytes[i]) << 8U |
           (i + 1 < size ? std::to_integer<std::uint32_t>(bytes[i + 1]) : 0U);
  while (sum >> 16U != 0) sum = (sum & 0xffffU) + (sum >> 16U);
  return sum;
}

std::uint32_t pseudo_sum(const iphdr& ip, std::size_t tcp_bytes) {
  std::array<std::byte, 8> addresses;
  std::memcpy(addresses.data(), &ip.saddr, 8);
  return sum16(addresses.data(), 8, static_cast<std::uint32_t>(IPPROTO_TCP + tcp_bytes));
}

constexpr std::uint32_t kSequence = 1000;

std::vector<std::byte> Tap::provoke_reset(std::size_t payload_bytes, std::uint16_t segment_size,
                                          bool* checksum_good) {
  TxFrame frame;
  ethhdr ethernet{};
  std::memcpy(ethernet.h_dest, kernel_mac().bytes.data(), 6);
  std::memcpy(ethernet.h_source, kOurMac.bytes.data(), 6);
  ethernet.h_proto = htons(ETH_P_IP);
  iphdr ip{};
  ip.version = 4;
  ip.ihl = 5;
  ip.ttl = 64;
  ip.protocol = IPPROTO_TCP;
  ip.tot_len = htons(static_cast<std::uint16_t>(sizeof(ip) + sizeof(tcphdr) + payload_bytes));
  inet_pton(AF_INET, kOurAddress, &ip.saddr);
  inet_pton(AF_INET, kKernelAddress, &ip.daddr);
  tcphdr tcp{};
  tcp.source = htons(4000);
  tcp.dest = htons(9);
  tcp.seq = htonl(kSequence);
  tcp.doff = 5;
  tcp.psh = 1;
  tcp.window = htons(1000);
  tcp.check = htons(static_cast<std::uint16_t>(pseudo_sum(ip, sizeof(tcp) + payload_bytes)));
  std::byte* at = frame.header.data();
  std::memcpy(at, &ethernet, sizeof(ethernet));
  std::memcpy(at + sizeof(ethernet), &ip, sizeof(ip));
  std::memcpy(at + sizeof(ethernet) + sizeof(ip), &tcp, sizeof(tcp));
  frame.header_bytes = sizeof(ethernet) + sizeof(ip) + sizeof(tcp);
  frame.l2_bytes = sizeof(ethernet);
  frame.l3_bytes = sizeof(ip);
  frame.checksum_offload = true;
  frame.segment_size_bytes = segment_size;
  const std::vector<std::byte> payload(payload_bytes, std::byte{0x5a});
  frame.payload_bytes = static_cast<std::uint32_t>(payload_bytes);
  frame.fragments[0] = {payload.data(), static_cast<std::uint32_t>(payload_bytes), kUnmapped};
  frame.fragment_count = payload_bytes == 0 ? 0 : 1;
  EXPECT_EQ(link_->transmit({&frame, 1}), 1U);
  return receive_if(
      [](const auto& bytes) {
        return bytes.size() >= 54 && bytes[12] == std::byte{8} && bytes[13] == std::byte{0} &&
               bytes[23] == std::byte{IPPROTO_TCP};
      },
      checksum_good);
}

void expect_reset_after(const std::vector<std::byte>& bytes, std::size_t payload_bytes) {
  ASSERT_GE(bytes.size(), 54U);
  tcphdr tcp{};
  std::memcpy(&tcp, bytes.data() + 34, sizeof(tcp));
  EXPECT_EQ(tcp.rst, 1);
  EXPECT_EQ(ntohl(tcp.ack_seq), kSequence + payload_bytes);
}

TEST_F(Tap, FinishesChecksumsOfTransmittedFrames) {
  open(1500);
  bool checksum_good = false;
  // The kernel answers only a segment with correct IP and TCP checksums.
  expect_reset_after(provoke_reset(1001, 0, &checksum_good), 1001);
}

TEST_F(Tap, TakesSuperSegments) {
  open(1500);
  bool checksum_good = false;
  expect_reset_after(provoke_reset(40 * 1460 + 7, 1460, &checksum_good), 40 * 1460 + 7);
}

TEST_F(Tap, WithoutOffloadsReceivedFramesCarryFullChecksums) {
  open(1500, /*offloads=*/false);
  EXPECT_FALSE(link_->capabilities().tx_checksum);
  EXPECT_EQ(link_->capabilities().max_super_segment_bytes, 0U);
  bool checksum_good = true;
  const auto bytes = provoke_reset(10, 0, &checksum_good);
  EXPECT_FALSE(checksum_good);
  ASSERT_GE(bytes.size(), 54U);
  iphdr ip{};
  std::memcpy(&ip, bytes.data() + 14, sizeof(ip));
  const std::size_t tcp_bytes = ntohs(ip.tot_len) - sizeof(ip);
  EXPECT_EQ(sum16(bytes.data() + 34, tcp_bytes, pseudo_sum(ip, tcp_bytes)), 0xffffU);
}

TEST_F(Tap, ExhaustedFramesAreCountedAndComeBack) {
  open(1500);
  const SentFrame sent(1, 100, 1);
  for (int i = 0; i < 100; ++i) ASSERT_EQ(send(packet_.get(), sent.bytes().data(), 100, 0), 100);
  std::array<RxFrame, 100> received;
  // All but the space of a super-segment, which may come next.
  const std::size_t count = link_->receive(received);
  EXPECT_GE(count, 64U - 18);
  EXPECT_LT(count, 64U);
  EXPECT_GE(link_->counters().rx_dropped_no_memory, 1U);
  link_->release(std::span(received).first(count));
  EXPECT_GE(link_->receive(received), 36U);
}

TEST_F(Tap, ReceivesWithAllKept) {
  for (const std::uint16_t mtu : {std::uint16_t{1500}, std::uint16_t{9000}})
    for (const bool offloads : {true, false})
      for (const std::size_t size : {std::size_t{100}, mtu + std::size_t{14}}) {
        open(mtu, offloads, 512);
        const SentFrame sent(1, size, 1);
        test::expect_it_receives_with_all_kept(*link_, [&] {
          ASSERT_EQ(send(packet_.get(), sent.bytes().data(), size, 0), static_cast<ssize_t>(size));
        });
        link_.reset();
      }
}

// A window of 4 MiB in frames of any size, twice: one connection gets half.
TEST_F(Tap, KeepsAWindowOfSmallFrames) {
  for (const std::uint16_t mtu : {std::uint16_t{1500}, std::uint16_t{9000}, std::uint16_t{60000}}) {
    open(mtu, true, 0);
    const SentFrame sent(1, mtu + 14U, 1);
    ASSERT_EQ(send(packet_.get(), sent.bytes().data(), mtu + 14U, 0), mtu + 14);
    RxFrame frame;
    ASSERT_TRUE(test::within_seconds(1, [&] { return link_->receive({&frame, 1}) == 1; }));
    const std::size_t frames = 2 * (4U << 20) / (mtu - 52U);
    EXPECT_GE(link_->capabilities().max_kept_bytes, frames * frame.charge_bytes) << mtu;
    EXPECT_GE(link_->capabilities().max_kept_frames, frames);
    link_->release({&frame, 1});
    link_.reset();
  }
}

TEST_F(Tap, TakesSuperSegmentsInPieces) {
  open(1500);
  // Sent like the kernel's TCP would, by a packet socket with the same offload header.
  const Fd socket(::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC, 0));
  const int on = 1;
  ASSERT_EQ(setsockopt(socket.get(), SOL_PACKET, PACKET_VNET_HDR, &on, sizeof(on)), 0);
  sockaddr_ll to{};
  to.sll_family = AF_PACKET;
  to.sll_protocol = htons(ETH_P_IP);
  to.sll_ifindex = static_cast<int>(if_nametoindex(kInterface));
  for (const std::size_t size : {3824UL, 3825UL, 10'000UL, 40'000UL, 65'000UL}) {
    std::vector<std::byte> sent(size);
    for (std::size_t i = 0; i < size; ++i) sent[i] = test::pattern(7, i);
    sent[12] = std::byte{8};
    sent[13] = std::byte{0};
    iphdr ip{};
    ip.version = 4;
    ip.ihl = 5;
    ip.ttl = 64;
    ip.protocol = IPPROTO_TCP;
    ip.tot_len = htons(static_cast<std::uint16_t>(size - 14));
    std::memcpy(sent.data() + 14, &ip, sizeof(ip));
    tcphdr tcp{};
    tcp.doff = 5;
    std::memcpy(sent.data() + 34, &tcp, sizeof(tcp));
    // Checksum to be filled from byte 34 into the field 16 bytes after it; TCP over IPv4 in
    // segments of 1460.
    const std::array<std::uint8_t, 10> offload{1, 1, 54, 0, 1460 & 0xff, 1460 >> 8, 34, 0, 16, 0};
    std::vector<std::byte> frame(offload.size());
    std::memcpy(frame.data(), offload.data(), offload.size());
    frame.insert(frame.end(), sent.begin(), sent.end());
    ASSERT_EQ(sendto(socket.get(), frame.data(), frame.size(), 0,
                     reinterpret_cast<const sockaddr*>(&to), sizeof(to)),
              static_cast<ssize_t>(frame.size()))
        << std::strerror(errno);
    const auto got = receive_if([&](const auto& bytes) { return bytes.size() == size; });
    EXPECT_TRUE(got == sent) << size;
  }
}

TEST_F(Tap, IsGoneWithItsInterface) {
  open(1500);
  struct {
    nlmsghdr header{};
    ifinfomsg interface {};
  } request;
  request.header = {sizeof(request), RTM_DELLINK, NLM_F_REQUEST | NLM_F_ACK, 0, 0};
  request.interface.ifi_index = static_cast<int>(if_nametoindex(kInterface));
  const Fd netlink(socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE));
  ASSERT_EQ(send(netlink.get(), &request, sizeof(request), 0),
            static_cast<ssize_t>(sizeof(request)));
  std::array<char, 256> answer;
  ASSERT_GT(recv(netlink.get(), answer.data(), answer.size(), 0), 0);
  std::array<RxFrame, 4> received;
  EXPECT_EQ(link_->receive(received), 0U);
  EXPECT_EQ(link_->state(), LinkState::kGone);
  SentFrame sent(1, 100, 1);
  EXPECT_EQ(link_->transmit({&sent.frame(), 1}), 1U);
  EXPECT_EQ(link_->counters().tx_dropped, 1U);
}

TEST_F(Tap, RefusesAnInterfaceThatAnotherHas) {
  open(1500);
  TapConfig config;
  config.interface = kInterface;
  const auto second = open_tap(config);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::kBusy);
}

TEST_F(Tap, RefusesAnInvalidName) {
  TapConfig config;
  config.interface = "a-name-of-more-than-15-letters";
  EXPECT_EQ(open_tap(config).error().code, Errc::kBadConfig);
}

}  // namespace
}  // namespace ztcp::link
