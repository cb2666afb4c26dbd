// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// How connections end: FIN first from either side, half closed, both at once, reset by either, and
// long silence, which does not end one.
#include <cerrno>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/socket.h>

#include "tests/interop/tap_test.h"
#include "transport/wire/frame_parser.h"

namespace ztcp::interop {
namespace {

class EndsTap : public TapTest, public testing::WithParamInterface<bool> {
 protected:
  // From either side: the one that opened has probed the path, the other has not.
  static Opener opener() { return GetParam() ? Opener::kUs : Opener::kKernel; }
  void open_and_connect(std::size_t our_bytes, std::size_t kernel_bytes,
                        const TapOptions& options = {}) {
    open(options);
    make_apps(our_bytes, kernel_bytes);
    connect(opener());
  }
  // Ours has forgotten the connection, or keeps it in TIME-WAIT.
  bool is_ours_finished() { return stack().unfinished() == 0; }
};

TEST_P(EndsTap, WeCloseFirstBehindOurData) {
  open_and_connect(300'000, 0);
  ours_->close_when_acked();
  ASSERT_TRUE(run_until([this] { return kernel_->is_peer_closed(); }));
  EXPECT_TRUE(kernel_->has_received_all());
  kernel_->close();
  ASSERT_TRUE(run_until([this] { return is_ours_finished(); }));
}

TEST_P(EndsTap, TheKernelClosesFirstBehindItsData) {
  open_and_connect(0, 300'000);
  ASSERT_TRUE(run_until([this] { return kernel_->has_sent_all(); }));
  kernel_->close();
  ASSERT_TRUE(run_until([this] { return ours_->is_peer_closed(); }));
  EXPECT_TRUE(ours_->has_received_all());
  EXPECT_FALSE(ours_->error());
  const KernelCounters counters;
  ours_->close();
  ASSERT_TRUE(run_until([this] { return is_ours_finished(); }));
  // The kernel was in LAST-ACK, and reset nothing.
  EXPECT_EQ(counters["TcpOutRsts"], 0U);
}

TEST_P(EndsTap, TheKernelsHalfCloseLeavesOurHalfOpen) {
  open_and_connect(3U << 20, 50'000);
  kernel_->set_reading(false);
  ASSERT_TRUE(run_until([this] { return kernel_->has_sent_all(); }));
  kernel_->shutdown_write();
  ASSERT_TRUE(run_until([this] { return ours_->is_peer_closed(); }));
  EXPECT_TRUE(ours_->has_received_all());
  kernel_->set_reading(true);
  ASSERT_TRUE(run_until([this] { return is_all_delivered(); }));
  ours_->close();
  ASSERT_TRUE(run_until([this] { return kernel_->is_peer_closed() && is_ours_finished(); }));
}

// RFC 9293 section 3.6.1: the bytes have no reader here, and the kernel's user gets the error.
TEST_P(EndsTap, BytesBehindOurFinAreReset) {
  open_and_connect(10, 3U << 20);
  ASSERT_TRUE(run_until([this] { return ours_->is_all_acked() && kernel_->has_received_all(); }));
  EXPECT_LT(ours_->received(), kernel_data_.size());
  ours_->close();
  ASSERT_TRUE(run_until([this] { return kernel_->error() != 0; }));
  // It had our FIN before the reset.
  EXPECT_TRUE(kernel_->error() == EPIPE || kernel_->error() == ECONNRESET) << kernel_->error();
  ASSERT_TRUE(run_until([this] { return is_ours_finished(); }));
}

TEST_P(EndsTap, OurHalfCloseReceivesTheRest) {
  open_and_connect(50'000, 3U << 20);
  ours_->finish_when_acked();
  ASSERT_TRUE(run_until([this] { return kernel_->is_peer_closed() && kernel_->has_sent_all(); }));
  EXPECT_TRUE(kernel_->has_received_all());
  kernel_->shutdown_write();
  ASSERT_TRUE(run_until([this] { return ours_->is_finished(); }));
  EXPECT_TRUE(ours_->has_received_all());
  EXPECT_TRUE(ours_->is_peer_closed());
  EXPECT_FALSE(ours_->error());
  EXPECT_EQ(stack().counters().tx_resets, 0U);
}

TEST_P(EndsTap, SimultaneousCloseEndsBoth) {
  // A cable long enough for two FINs to cross on it, on a busy machine too.
  const link::Impairment slow{.delay = 150ms};
  Cable& cable = open_cable({}, slow, slow);
  std::uint32_t our_fin_acks = 0;
  std::uint32_t kernels_fin = 0;
  cable.observe([&](bool outgoing, const sim::Bytes& bytes) {
    RxFrame view;
    view.head = bytes;
    const auto parsed = wire::parse_frame(view);
    if (parsed.kind != wire::FrameKind::kTcp || !parsed.tcp.flags.has(wire::kFin)) return;
    (outgoing ? our_fin_acks : kernels_fin) =
        outgoing ? parsed.tcp.acknowledgment : parsed.tcp.sequence;
  });
  make_apps(1000, 1000);
  connect(opener());
  ASSERT_TRUE(run_until([this] { return is_all_delivered(); }));
  const KernelCounters counters;
  kernel_->close();
  ours_->close();
  ASSERT_TRUE(run_until([this] { return is_ours_finished(); }));
  ASSERT_TRUE(run_for(500ms));
  EXPECT_NE(kernels_fin, 0U);
  EXPECT_EQ(our_fin_acks, kernels_fin);  // They did cross.
  EXPECT_EQ(counters["TcpOutRsts"], 0U);
  EXPECT_EQ(stack().counters().tx_resets, 0U);
}

TEST_P(EndsTap, AKernelResetFailsOurStream) {
  open_and_connect(1000, 1000);
  ASSERT_TRUE(run_until([this] { return is_all_delivered(); }));
  kernel_->reset();
  ASSERT_TRUE(run_until([this] { return ours_->error().has_value(); }));
  EXPECT_EQ(ours_->error()->code, Errc::kPeerClosed);
}

TEST_P(EndsTap, AKernelResetUnderBulkFailsOurStream) {
  open_and_connect(64U << 20, 64U << 20);
  ASSERT_TRUE(run_until([this] { return ours_->received() > 1U << 20; }));
  kernel_->reset();
  ASSERT_TRUE(run_until([this] { return ours_->error().has_value(); }));
  EXPECT_EQ(ours_->error()->code, Errc::kPeerClosed);
}

TEST_P(EndsTap, AKernelThatClosesWithUnreadBytesFailsOurStream) {
  open_and_connect(100'000, 0);
  kernel_->set_reading(false);
  ASSERT_TRUE(run_until([this] { return ours_->acked() > 50'000; }));
  kernel_->close();
  ASSERT_TRUE(run_until([this] { return ours_->error().has_value(); }));
  EXPECT_EQ(ours_->error()->code, Errc::kPeerClosed);
}

TEST_P(EndsTap, OurResetReachesTheKernel) {
  open_and_connect(1000, 1000);
  ASSERT_TRUE(run_until([this] { return is_all_delivered(); }));
  ours_->abort();
  ASSERT_TRUE(run_until([this] { return kernel_->error() != 0; }));
  EXPECT_EQ(kernel_->error(), ECONNRESET);
}

TEST_P(EndsTap, OurResetUnderBulkReachesTheKernel) {
  open_and_connect(64U << 20, 64U << 20);
  ASSERT_TRUE(run_until([this] { return ours_->received() > 1U << 20; }));
  ours_->abort();
  ASSERT_TRUE(run_until([this] { return kernel_->error() != 0; }));
  EXPECT_EQ(kernel_->error(), ECONNRESET);
}

TEST_P(EndsTap, TheKernelsKeepaliveIsAnswered) {
  open_and_connect(10, 10);
  ASSERT_TRUE(run_until([this] { return is_all_delivered(); }));
  const KernelCounters counters;
  kernel_->set_option(IPPROTO_TCP, TCP_KEEPIDLE, 1);
  kernel_->set_option(IPPROTO_TCP, TCP_KEEPINTVL, 1);
  kernel_->set_option(IPPROTO_TCP, TCP_KEEPCNT, 1);
  kernel_->set_option(SOL_SOCKET, SO_KEEPALIVE, 1);
  // Without answers the connection would end one second after the first probe.
  ASSERT_TRUE(run_for(2400ms));
  EXPECT_EQ(kernel_->error(), 0);
  EXPECT_GE(counters["TcpExtTCPKeepAlive"], 1U);
  EXPECT_EQ(counters["TcpExtTCPAbortOnTimeout"], 0U);
  finish();
}

TEST_P(EndsTap, OurKeepaliveIsAnswered) {
  TapOptions options;
  // The kernel answers such probes twice a second at most (tcp_invalid_ratelimit).
  options.tcp.keepalive_idle = 600ms;
  options.tcp.keepalive_interval = 250ms;
  open_and_connect(10, 10, options);
  ASSERT_TRUE(run_until([this] { return is_all_delivered(); }));
  ASSERT_TRUE(run_for(2s));
  EXPECT_FALSE(ours_->error());
  EXPECT_GE(stack().counters().rx_segments, 5U);
  finish();
}

// Our timestamps advance half their range in 36 minutes. A kernel that got none meanwhile takes all
// our later segments for old duplicates, up to Linux 6.6 for 24 days.
TEST_P(EndsTap, AnHourOfSilenceDoesNotEndTheConnection) {
  // By default it answers every 500 ms.
  ASSERT_TRUE(set_setting("ipv4/tcp_invalid_ratelimit", "0"));
  TapOptions options;
  options.tcp.keepalive_idle = 10min;
  open_and_connect(1000, 1000, options);
  ASSERT_TRUE(run_until([this] { return is_all_delivered(); }));
  for (Duration idle = 0s; idle < 60min; idle += options.tcp.keepalive_idle) {
    const std::uint64_t heard = stack().counters().rx_segments;
    host_->skip(options.tcp.keepalive_idle);
    ASSERT_TRUE(run_until([&] { return stack().counters().rx_segments > heard; }));
  }
  const KernelCounters counters;
  finish();
  EXPECT_EQ(counters["TcpExtPAWSEstabRejected"], 0U);
  EXPECT_FALSE(ours_->error());
}

INSTANTIATE_TEST_SUITE_P(Opener, EndsTap, testing::Bool(),
                         [](const auto& test) { return test.param ? "ours" : "kernels"; });

}  // namespace
}  // namespace ztcp::interop
