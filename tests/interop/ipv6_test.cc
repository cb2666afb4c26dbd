// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// IPv6 adds to a connection with the kernel: neighbour discovery of both, addresses that two hosts
// have, packet sizes. Bulk is in bulk_test.cc.
#include "transport/wire/ipv6.h"

#include "tests/interop/tap_test.h"
#include "transport/wire/tcp_header.h"

namespace ztcp::interop {
namespace {

class Ipv6Tap : public TapTest {};

TEST_F(Ipv6Tap, EachSideOpensAConnection) {
  for (const Opener opener : {Opener::kUs, Opener::kKernel}) {
    for (const bool offloads : {true, false}) {
      open({.offloads = offloads, .is_ipv6 = true});
      make_apps(200'000, 200'000);
      connect(opener);
      ASSERT_TRUE(run_until([this] { return is_all_delivered(); }));
      const KernelTcpInfo info = kernel_->info();
      EXPECT_TRUE(info.timestamps);
      EXPECT_TRUE(info.sack);
      EXPECT_EQ(info.send_mss_bytes,
                1500 - wire::kIpv6Bytes - wire::kTcpBytes - wire::kTimestampOptionBytes);
      EXPECT_EQ(stack().counters().rx_malformed, 0U);
      EXPECT_EQ(stack().counters().rx_bad_checksum, 0U);
      finish();
      start_over();
    }
  }
}

TEST_F(Ipv6Tap, ClosedPortsRefuseAtOnce) {
  open({.is_ipv6 = true});
  make_apps(1, 1);
  const auto stream = stack().connect(real_now(), kernel_port(), *ours_);
  ASSERT_TRUE(stream);
  ours_->attach(**stream);
  ASSERT_TRUE(run_until([this] { return ours_->error().has_value(); }));
  EXPECT_EQ(ours_->error()->code, Errc::kRefused);
  ASSERT_EQ(kernel_->connect(our_port()), "");
  ASSERT_TRUE(run_until([this] { return kernel_->error() != 0; }));
  EXPECT_EQ(kernel_->error(), ECONNREFUSED);
}

// Frames to the old address are lost; the solicitations that follow find the new one.
TEST_F(Ipv6Tap, WeFollowTheKernelsNewMac) {
  open({.is_ipv6 = true});
  make_apps(4U << 20, 0);
  connect(Opener::kUs);
  ASSERT_TRUE(run_until([this] { return kernel_->received() > 1U << 20; }));
  ASSERT_TRUE(set_interface_mac(kInterface, MacAddress{{2, 0, 0, 0, 0, 0x99}}));
  ASSERT_TRUE(run_until([this] { return is_all_delivered(); }));
  EXPECT_EQ(stack().counters().arp_mac_changes, 1U);
  finish();
}

// RFC 4862 section 5.4.3: the kernel has our address, and answers our probe.
TEST_F(Ipv6Tap, TheKernelTellsThatItHasOurAddress) {
  open({.is_ipv6 = true});
  ASSERT_TRUE(set_interface_mac(kInterface, MacAddress{{2, 0, 0, 0, 0, 0x99}}));
  ASSERT_TRUE(configure_interface(kInterface, kOurIpv6));
  stack().announce();
  ASSERT_TRUE(run_until([this] { return stack().duplicate().has_value(); }, 3s));
  EXPECT_EQ(*stack().duplicate(), (MacAddress{{2, 0, 0, 0, 0, 0x99}}));
  make_apps(1, 1);
  EXPECT_FALSE(stack().connect(real_now(), kernel_port(), *ours_));
}

TEST_F(Ipv6Tap, ABlackHoleIsReportedAsPathMtu) {
  Cable& cable = open_cable({.is_ipv6 = true});
  cable.outgoing().set_path_mtu(1400);
  make_apps(0, 0);
  connect(Opener::kUs);
  ASSERT_TRUE(run_until([this] { return ours_->error().has_value(); }));
  EXPECT_EQ(ours_->error()->code, Errc::kPathMtu);
}

}  // namespace
}  // namespace ztcp::interop
