// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The path between the hosts: neighbours, routers with smaller MTUs, black holes; and the kernel's
// answers to the path probe.
#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/ip_icmp.h>
#include <sys/socket.h>

#include "tests/interop/tap_test.h"
#include "transport/wire/checksum.h"
#include "transport/wire/frame_parser.h"
#include "transport/wire/ipv4.h"

namespace ztcp::interop {
namespace {

// Path probes, and the D-SACKs that answer them.
struct ProbeCount {
  int probes = 0;
  int answers = 0;

  void watch(Cable& cable) {
    cable.observe([this](bool outgoing, const sim::Bytes& bytes) {
      RxFrame view;
      view.head = bytes;
      const auto parsed = wire::parse_frame(view);
      if (parsed.kind != wire::FrameKind::kTcp) return;
      if (outgoing && parsed.tcp.flags.has(wire::kSyn)) first_ = parsed.tcp.sequence + 1;
      if (outgoing && parsed.payload_bytes > 0 &&
          parsed.tcp.sequence + parsed.payload_bytes == first_) {
        ++probes;
        probe_ = parsed.tcp.sequence;
      }
      if (!outgoing && parsed.tcp.options.sack_count > 0 &&
          parsed.tcp.options.sack[0] == wire::SackBlock{probe_, first_})
        ++answers;
    });
  }

 private:
  std::uint32_t first_ = 0;
  std::uint32_t probe_ = 0;
};

class PathTap : public TapTest {};

TEST_F(PathTap, TheKernelAnswersTheProbeWithADsack) {
  for (const std::uint16_t mtu_bytes : {std::uint16_t{1500}, std::uint16_t{9000}}) {
    ProbeCount count;
    count.watch(open_cable({.mtu_bytes = mtu_bytes}));
    make_apps(0, 0);
    const KernelCounters counters;
    connect(Opener::kUs);
    ASSERT_TRUE(run_for(400ms));  // Without an answer it would be repeated after 100 ms.
    EXPECT_EQ(count.probes, 1);
    EXPECT_EQ(count.answers, 1);
    EXPECT_EQ(counters["TcpExtTCPDSACKOldSent"], 1U);
    finish();
    start_over();
  }
}

TEST_F(PathTap, AKernelWithoutDsackAnswersToo) {
  ASSERT_TRUE(set_setting("ipv4/tcp_dsack", "0"));
  ProbeCount count;
  count.watch(open_cable({}));
  make_apps(0, 0);
  connect(Opener::kUs);
  ASSERT_TRUE(run_for(400ms));
  EXPECT_EQ(count.probes, 1);
  EXPECT_EQ(count.answers, 0);
  finish();
}

TEST_F(PathTap, ABlackHoleIsReportedAsPathMtu) {
  Cable& cable = open_cable({});
  cable.outgoing().set_path_mtu(1400);
  make_apps(0, 0);
  connect(Opener::kUs);
  // Small packets are answered, as often as the kernel's limit on such answers allows.
  ASSERT_TRUE(run_until([this] { return ours_->error().has_value(); }));
  EXPECT_EQ(ours_->error()->code, Errc::kPathMtu);
}

// We - router - kernel, with a smaller MTU behind the router. The router is the kernel, too, in
// another network.
struct Route {
  const char* name;
  bool offloads;
  bool is_ipv6;
};
class RouterTap : public TapTest, public testing::WithParamInterface<Route> {
 protected:
  static constexpr std::uint16_t kWide = 9000;
  static constexpr std::uint16_t kNarrow = 1400;
  // The network behind the router has it.
  static IpPrefix far_prefix(std::uint8_t host) {
    if (GetParam().is_ipv6) return {{0xfd63'0008ULL << 32, host}, 64};
    return Ipv4Prefix{Ipv4Address{0x0a630800U + host}, 24};
  }
  const IpPrefix router_address_ = far_prefix(1);
  const IpPrefix far_address_ = far_prefix(2);
  const Endpoint far_port_{far_address_.address, 9000};
  const char* const errors_ = GetParam().is_ipv6 ? "Icmp6OutPktTooBigs" : "IcmpOutDestUnreachs";
  const char* const fragments_ = GetParam().is_ipv6 ? "Ip6FragCreates" : "IpFragCreates";

  static std::unique_ptr<link::Link> far_tap(const char* name, IpPrefix address) {
    auto opened =
        link::open_tap({.interface = name, .mac = kOurMac, .mtu_bytes = kWide, .offloads = false});
    if (!opened || !configure_interface(name, address)) return nullptr;
    return std::move(*opened);
  }
  void build() {
    make_apps(3U << 20, 3U << 20);
    // The far network is the fixture's; sockets and taps stay in the network they were made in.
    far_ = far_tap("far0", far_address_);
    ASSERT_NE(far_, nullptr);
    const bool is_ipv6 = GetParam().is_ipv6;
    ASSERT_TRUE(add_route(is_ipv6 ? IpPrefix{{0xfd63'0007ULL << 32, 0}, 64} : kOurAddress,
                          router_address_.address, kWide));
    ASSERT_EQ(kernel_->listen(far_port_), "");
    ASSERT_EQ(enter_new_network(), "");
    open({.mtu_bytes = kWide, .offloads = GetParam().offloads, .is_ipv6 = is_ipv6});
    router_ = far_tap("router0", router_address_);
    ASSERT_NE(router_, nullptr);
    ASSERT_TRUE(set_setting(is_ipv6 ? "ipv6/conf/all/forwarding" : "ipv4/ip_forward", "1"));
    actors_.emplace_back([this] {
      forward(*router_, *far_);
      forward(*far_, *router_);
    });
  }
  void connect_far() {
    const auto stream = stack().connect(real_now(), far_port_, *ours_);
    ASSERT_TRUE(stream);
    ours_->attach(**stream);
  }
  void TearDown() override {
    TapTest::TearDown();
    router_.reset();
    far_.reset();
  }

  std::unique_ptr<link::Link> far_;
  std::unique_ptr<link::Link> router_;
};

TEST_P(RouterTap, ASmallPathMtuIsFoundByFragmentationNeeded) {
  build();
  ASSERT_TRUE(set_interface_mtu("router0", kNarrow));
  const KernelCounters router;
  connect_far();
  ASSERT_TRUE(run_until([this] { return is_all_delivered(); }));
  EXPECT_GE(router[errors_], 1U);
  EXPECT_EQ(router[fragments_], 0U);
  EXPECT_LE(kernel_->info().receive_mss_bytes, kNarrow - (GetParam().is_ipv6 ? 72U : 52U));
}

TEST_P(RouterTap, AShrinkingPathMtuUnderBulkIsFollowed) {
  build();
  const KernelCounters router;
  connect_far();
  ASSERT_TRUE(run_until([this] { return kernel_->received() > 500'000; }));
  EXPECT_EQ(router[errors_], 0U);
  ASSERT_TRUE(set_interface_mtu("router0", kNarrow));
  ASSERT_TRUE(run_until([this] { return is_all_delivered(); }));
  EXPECT_GE(router[errors_], 1U);
  EXPECT_EQ(router[fragments_], 0U);
}

INSTANTIATE_TEST_SUITE_P(Frames, RouterTap,
                         testing::Values(Route{"packets", false, false},
                                         Route{"super_segments", true, false},
                                         Route{"ipv6_packets", false, true},
                                         Route{"ipv6_super_segments", true, true}),
                         [](const auto& test) { return test.param.name; });

TEST_F(PathTap, EchoRequestsAreAnswered) {
  open();
  const Fd socket(::socket(AF_INET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_ICMP));
  ASSERT_TRUE(socket);
  sockaddr_in to{};
  to.sin_family = AF_INET;
  to.sin_addr.s_addr = htonl(kOurAddress.address.value);
  for (const std::size_t size : {std::size_t{0}, std::size_t{56}, std::size_t{1472}}) {
    sim::Bytes message = sim::pattern(sizeof(icmphdr) + size, size);
    icmphdr header{};
    header.type = ICMP_ECHO;
    header.un.echo.id = htons(77);
    header.un.echo.sequence = htons(static_cast<std::uint16_t>(size));
    std::memcpy(message.data(), &header, sizeof(header));
    const std::uint16_t sum = wire::internet_checksum(message);
    wire::store_be16(message.data() + 2, sum);
    ASSERT_EQ(sendto(socket.get(), message.data(), message.size(), 0,
                     reinterpret_cast<const sockaddr*>(&to), sizeof(to)),
              static_cast<ssize_t>(message.size()));
    sim::Bytes answer(2000);
    ssize_t got = 0;
    ASSERT_TRUE(run_until([&] {
      got = recv(socket.get(), answer.data(), answer.size(), 0);
      return got > 20 && answer[20] == std::byte{ICMP_ECHOREPLY};
    }));
    // Behind the IP header; type and checksum differ.
    ASSERT_EQ(static_cast<std::size_t>(got), 20 + message.size());
    EXPECT_TRUE(std::equal(message.begin() + 4, message.end(), answer.begin() + 24));
  }
}

TEST_F(PathTap, ArpResolvesUsAndWeFollowTheKernelsNewMac) {
  open();
  make_apps(2'000'000, 2'000'000);
  connect(Opener::kKernel);
  ASSERT_TRUE(run_until([this] { return ours_->received() > 100'000; }));
  EXPECT_EQ(known_mac(kOurAddress.address), kOurMac);
  // Frames to the old address are lost; the next ARP request finds the new one.
  ASSERT_TRUE(set_interface_mac(kInterface, MacAddress{{0x02, 0, 0, 0, 0, 0x99}}));
  ASSERT_TRUE(run_until([this] { return is_all_delivered(); }));
  finish();
}

}  // namespace
}  // namespace ztcp::interop
