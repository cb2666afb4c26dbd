// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Opening from either side, the negotiated options, and connections that are refused. The kernel's
// own view (TCP_INFO) says whether an option was really on.
#include <cerrno>
#include <netinet/in.h>
#include <sys/socket.h>
#include <utility>

#include "tests/interop/tap_test.h"
#include "transport/wire/ipv4.h"
#include "transport/wire/tcp_header.h"

namespace ztcp::interop {
namespace {

constexpr std::size_t kHeaderBytes = wire::kIpv4Bytes + wire::kTcpBytes;

class HandshakeTap : public TapTest {
 protected:
  void expect_everything_agreed(std::uint16_t mtu_bytes) {
    const KernelTcpInfo info = kernel_->info();
    EXPECT_TRUE(info.timestamps);
    EXPECT_TRUE(info.sack);
    EXPECT_TRUE(info.window_scaling);
    EXPECT_GE(info.peer_window_scale, 8);
    EXPECT_EQ(info.send_mss_bytes, mtu_bytes - kHeaderBytes - wire::kTimestampOptionBytes);
    EXPECT_GT(info.rtt_us, 0U);
  }
};

TEST_F(HandshakeTap, WeOpenTheConnection) {
  for (const std::uint16_t mtu_bytes : {std::uint16_t{1500}, std::uint16_t{9000}}) {
    open({.mtu_bytes = mtu_bytes});
    make_apps(200'000, 200'000);
    connect(Opener::kUs);
    ASSERT_TRUE(run_until([this] { return is_all_delivered(); }));
    expect_everything_agreed(mtu_bytes);
    finish();
    start_over();
  }
}

TEST_F(HandshakeTap, TheKernelOpensTheConnection) {
  for (const std::uint16_t mtu_bytes : {std::uint16_t{1500}, std::uint16_t{9000}}) {
    open({.mtu_bytes = mtu_bytes});
    make_apps(200'000, 200'000);
    connect(Opener::kKernel);
    ASSERT_TRUE(run_until([this] { return is_all_delivered(); }));
    expect_everything_agreed(mtu_bytes);
    finish();
    start_over();
  }
}

struct Without {
  const char* name;
  const char* setting;
  const char* value;
};

// A kernel that was told to omit an option, or to ask for one that we don't have.
class OptionTap : public HandshakeTap, public testing::WithParamInterface<Without> {};

TEST_P(OptionTap, TransferIsRightWithoutTheOption) {
  for (const Opener opener : {Opener::kUs, Opener::kKernel}) {
    ASSERT_TRUE(set_setting(GetParam().setting, GetParam().value));
    open();
    make_apps(1U << 20, 1U << 20);
    connect(opener);
    ASSERT_TRUE(run_until([this] { return is_all_delivered(); }));
    const std::string name = GetParam().name;
    const KernelTcpInfo info = kernel_->info();
    EXPECT_EQ(info.timestamps, name != "timestamps");
    EXPECT_EQ(info.sack, name != "sack");
    EXPECT_EQ(info.window_scaling, name != "window_scaling");
    // By default Linux accepts ECN and does not ask for it.
    EXPECT_EQ(info.ecn, opener == Opener::kUs || name == "ecn_wanted");
    finish();
    start_over();
  }
}

INSTANTIATE_TEST_SUITE_P(Kernel, OptionTap,
                         testing::Values(Without{"timestamps", "ipv4/tcp_timestamps", "0"},
                                         Without{"sack", "ipv4/tcp_sack", "0"},
                                         Without{"window_scaling", "ipv4/tcp_window_scaling", "0"},
                                         Without{"random_timestamps", "ipv4/tcp_timestamps", "2"},
                                         Without{"ecn_wanted", "ipv4/tcp_ecn", "1"}),
                         [](const auto& test) { return std::string(test.param.name); });

TEST_F(HandshakeTap, AClosedPortOfTheKernelRefusesAtOnce) {
  open();
  const KernelCounters kernel;
  make_apps(1, 1);
  const auto stream = stack().connect(real_now(), kKernelPort, *ours_);
  ASSERT_TRUE(stream);
  ours_->attach(**stream);
  ASSERT_TRUE(run_until([this] { return ours_->error().has_value(); }));
  EXPECT_EQ(ours_->error()->code, Errc::kRefused);
  EXPECT_EQ(kernel["TcpOutRsts"], 1U);  // The answer to the first SYN.
}

TEST_F(HandshakeTap, AClosedPortOfOursRefusesAtOnce) {
  open();
  make_apps(1, 1);
  ASSERT_EQ(kernel_->connect(kOurPort), "");
  ASSERT_TRUE(run_until([this] { return kernel_->error() != 0; }));
  EXPECT_EQ(kernel_->error(), ECONNREFUSED);
  EXPECT_EQ(stack().counters().tx_resets, 1U);  // The answer to the first SYN.
}

TEST_F(HandshakeTap, AnUnansweredConnectEnds) {
  TapOptions options;
  options.tcp.connect_timeout = 600ms;
  Cable& cable = open_cable(options);
  make_apps(1, 1);
  ASSERT_EQ(kernel_->listen(kKernelPort), "");
  // ARP is answered, the SYN is not.
  cable.incoming().drop_if([](const sim::Bytes& frame) { return frame.size() > 54; });
  const TimePoint start = real_now();
  const auto stream = stack().connect(start, kKernelPort, *ours_);
  ASSERT_TRUE(stream);
  ours_->attach(**stream);
  ASSERT_TRUE(run_until([this] { return ours_->error().has_value(); }));
  EXPECT_EQ(ours_->error()->code, Errc::kTimedOut);
  EXPECT_GE(real_now() - start, 600ms);
  EXPECT_LT(real_now() - start, tcp::TcpSettings{}.connect_timeout / 2);
}

TEST_F(HandshakeTap, LostHandshakeFramesAreSentAgain) {
  for (const Opener opener : {Opener::kUs, Opener::kKernel}) {
    for (const bool outgoing : {true, false}) {
      Cable& cable = open_cable({});
      make_apps(3000, 3000);
      // The first TCP frame of this direction: a SYN or a SYN-ACK.
      bool lost = false;
      (outgoing ? cable.outgoing() : cable.incoming()).drop_if([&lost](const sim::Bytes& frame) {
        return frame.size() > 60 && frame[23] == std::byte{6} && !std::exchange(lost, true);
      });
      connect(opener);
      EXPECT_TRUE(lost);
      ASSERT_TRUE(run_until([this] { return is_all_delivered(); }));
      finish();
      start_over();
    }
  }
}

// Options that we don't know change nothing.
TEST_F(HandshakeTap, AFastOpenRequestIsIgnored) {
  open();
  make_apps(3000, 3000);
  kernel_->set_fast_open();
  connect(Opener::kKernel);
  ASSERT_TRUE(run_until([this] { return is_all_delivered(); }));
  finish();
}

TEST_F(HandshakeTap, AMultipathRequestIsIgnored) {
  for (const Opener opener : {Opener::kUs, Opener::kKernel}) {
    open();
    make_apps(300'000, 300'000);
    if (const Fd probe(socket(AF_INET, SOCK_STREAM, IPPROTO_MPTCP)); probe)
      kernel_->set_protocol(IPPROTO_MPTCP);
    connect(opener);
    ASSERT_TRUE(run_until([this] { return is_all_delivered(); }));
    finish();
    start_over();
  }
}

// One side keeps the old connection in TIME-WAIT when the other opens it again.
TEST_F(HandshakeTap, TheSamePortsCanBeUsedAgainAtOnce) {
  TapOptions options;
  options.our_only_port = 40'000;
  options.tcp.time_wait = 60s;
  for (const Opener opener : {Opener::kUs, Opener::kKernel}) {
    open(options);
    for (int round = 0; round < 3; ++round) {
      make_apps(3000, 3000);
      kernel_->set_local_port(40'000);
      const TimePoint start = real_now();
      connect(opener);
      ASSERT_TRUE(run_until([this] { return is_all_delivered(); }));
      if (opener == Opener::kKernel) {
        finish();
      } else {
        kernel_->close();
        ASSERT_TRUE(run_until([this] { return ours_->is_peer_closed(); }));
        ours_->close();
        ASSERT_TRUE(run_until([this] { return stack().unfinished() == 0; }));
      }
      EXPECT_LT(real_now() - start, options.tcp.time_wait / 2);
      stack().unlisten(kOurPort.port);
    }
    start_over();
  }
}

TEST_F(HandshakeTap, UrgentDataIsDeliveredAsOrdinaryData) {
  open();
  make_apps(0, 5000);
  kernel_->end_urgently();
  const KernelCounters counters;
  connect(Opener::kUs);
  ASSERT_TRUE(run_until([this] { return is_all_delivered(); }));
  finish();
}

}  // namespace
}  // namespace ztcp::interop
