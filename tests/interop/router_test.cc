// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The kernel as a router: an address of its own in another network, to which our stack finds the
// way, and in which it takes its address, by router advertisements. These are sent from the
// kernel's link-local address, as a router's daemon does, and answer our solicitations.
#include <array>
#include <net/if.h>
#include <netinet/icmp6.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include "core/fd.h"
#include "core/interface_identifier.h"
#include "core/socket_address.h"
#include "tests/interop/tap_test.h"
#include "transport/wire/ipv6.h"

namespace ztcp::interop {
namespace {

constexpr IpPrefix kBehind{{0xfd63'0008ULL << 32, 1}, 128};

// Sends and receives ICMPv6 on the tap.
class RouterDaemon {
 public:
  RouterDaemon()
      : socket_(socket(AF_INET6, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, IPPROTO_ICMPV6)) {
    const int index = static_cast<int>(if_nametoindex(kInterface));
    set(IPV6_MULTICAST_HOPS, 255);
    set(IPV6_MULTICAST_IF, index);
    ipv6_mreq group{};
    group.ipv6mr_multiaddr = in6(wire::kAllRouters);
    group.ipv6mr_interface = static_cast<unsigned>(index);
    EXPECT_EQ(setsockopt(socket_.get(), IPPROTO_IPV6, IPV6_JOIN_GROUP, &group, sizeof group), 0);
    icmp6_filter filter;
    ICMP6_FILTER_SETBLOCKALL(&filter);
    ICMP6_FILTER_SETPASS(ND_ROUTER_SOLICIT, &filter);
    EXPECT_EQ(setsockopt(socket_.get(), IPPROTO_ICMPV6, ICMP6_FILTER, &filter, sizeof filter), 0);
  }

  // The prefix of the kernel's address, too, where valid_s is not 0.
  void advertise(std::uint16_t lifetime_s) const {
    struct Message {
      nd_router_advert router;
      nd_opt_prefix_info prefix;
    };
    static_assert(sizeof(Message) == sizeof(nd_router_advert) + sizeof(nd_opt_prefix_info));
    Message message{};
    message.router.nd_ra_type = ND_ROUTER_ADVERT;
    message.router.nd_ra_router_lifetime = htons(lifetime_s);
    message.prefix.nd_opt_pi_type = ND_OPT_PREFIX_INFORMATION;
    message.prefix.nd_opt_pi_len = 4;
    message.prefix.nd_opt_pi_prefix_len = 64;
    message.prefix.nd_opt_pi_flags_reserved = ND_OPT_PI_FLAG_ONLINK | ND_OPT_PI_FLAG_AUTO;
    message.prefix.nd_opt_pi_valid_time = message.prefix.nd_opt_pi_preferred_time = htonl(valid_s);
    message.prefix.nd_opt_pi_prefix = in6({kKernelIpv6.address.high, 0});
    const std::size_t size = valid_s != 0 ? sizeof message : sizeof message.router;
    const SocketAddress to = to_socket_address({wire::kAllNodes, 0});
    EXPECT_EQ(sendto(socket_.get(), &message, size, 0, to.get(), to.size_bytes),
              static_cast<ssize_t>(size));
  }
  void answer_solicitations() {
    std::array<std::byte, 256> message;
    while (recv(socket_.get(), message.data(), message.size(), 0) > 0) {
      ++solicitations;
      advertise(1800);
    }
  }

  int solicitations = 0;
  std::uint32_t valid_s = 0;

 private:
  static in6_addr in6(IpAddress address) {
    const SocketAddress socket_address = to_socket_address({address, 0});
    return reinterpret_cast<const sockaddr_in6*>(socket_address.get())->sin6_addr;
  }
  void set(int name, int value) const {
    EXPECT_EQ(setsockopt(socket_.get(), IPPROTO_IPV6, name, &value, sizeof value), 0);
  }

  Fd socket_;
};

class RouterTap : public TapTest {
 protected:
  void SetUp() override {
    TapTest::SetUp();
    if (IsSkipped()) return;
    // Its link-local address is usable at once.
    EXPECT_TRUE(set_setting("ipv6/conf/default/dad_transmits", "0"));
    open_host();
    EXPECT_TRUE(configure_interface("lo", kBehind));
    daemon_.emplace();
    actors_.emplace_back([this] { daemon_->answer_solicitations(); });
  }

  virtual void open_host() { open({.is_ipv6 = true, .finds_router = true}); }

  std::optional<RouterDaemon> daemon_;
};

class PrefixTap : public RouterTap {
 protected:
  void SetUp() override {
    RouterTap::SetUp();
    if (!IsSkipped()) daemon_->valid_s = 3600;
  }
  void open_host() override {
    open({.is_ipv6 = true, .finds_address = true, .finds_router = true});
  }
};

TEST_F(PrefixTap, EachSideOpensAConnectionWithTheAdvertisedAddress) {
  for (const Opener opener : {Opener::kUs, Opener::kKernel}) {
    make_apps(300'000, 300'000);
    EXPECT_EQ(stack().address(), IpAddress());
    ASSERT_TRUE(run_until([this] { return stack().address() != IpAddress(); }));
    EXPECT_EQ(stack().address(), address_of_mac(kKernelIpv6.address, kOurMac));
    EXPECT_FALSE(stack().awaits_router()) << "one advertisement has both";
    connect(opener);
    ASSERT_TRUE(run_until([this] { return is_all_delivered(); }));
    EXPECT_EQ(stack().counters().rx_malformed, 0U);
    EXPECT_FALSE(stack().duplicate());
    finish();
    if (opener == Opener::kUs) start_over();
  }
}

TEST_F(RouterTap, AnAdvertisedRouterLeadsToAnotherNetwork) {
  make_apps(300'000, 300'000);
  EXPECT_TRUE(stack().awaits_router());
  EXPECT_FALSE(stack().connect(real_now(), {kBehind.address, kKernelPort.port}, *ours_));
  ASSERT_TRUE(run_until([this] { return !stack().awaits_router(); }));
  EXPECT_GE(daemon_->solicitations, 1);
  ASSERT_EQ(kernel_->listen({kBehind.address, kKernelPort.port}), "");
  const auto stream = stack().connect(real_now(), {kBehind.address, kKernelPort.port}, *ours_);
  ASSERT_TRUE(stream);
  ours_->attach(**stream);
  ASSERT_TRUE(run_until([this] { return is_all_delivered(); }));
  EXPECT_EQ(stack().counters().rx_malformed, 0U);
  finish();
}

TEST_F(RouterTap, ARouterThatEndsItsServiceLeavesConnectionsOpen) {
  make_apps(4U << 20, 0);
  ASSERT_TRUE(run_until([this] { return !stack().awaits_router(); }));
  ASSERT_EQ(kernel_->listen({kBehind.address, kKernelPort.port}), "");
  const auto stream = stack().connect(real_now(), {kBehind.address, kKernelPort.port}, *ours_);
  ASSERT_TRUE(stream);
  ours_->attach(**stream);
  ASSERT_TRUE(run_until([this] { return kernel_->received() > 100'000; }));
  actors_.clear();
  daemon_->advertise(0);
  ASSERT_TRUE(run_until([this] { return stack().awaits_router(); }));
  EXPECT_FALSE(stack().connect(real_now(), {kBehind.address, 9001}, *ours_));
  ASSERT_TRUE(run_until([this] { return is_all_delivered(); }));
  finish();
}

}  // namespace
}  // namespace ztcp::interop
