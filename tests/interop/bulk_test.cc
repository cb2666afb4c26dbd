// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Transfers of every size, in large and small pieces, both ways, with each of the kernel's
// congestion controls: every byte is compared. The printed rates are for the reader; no test
// depends on them.
#include <sstream>

#include "tests/interop/tap_test.h"

namespace ztcp::interop {
namespace {

struct Shape {
  const char* name;
  std::uint16_t mtu_bytes;
  bool offloads;
  bool is_ipv6 = false;
};

class BulkTap : public TapTest, public testing::WithParamInterface<Shape> {
 protected:
  void open_shape() {
    open({.mtu_bytes = GetParam().mtu_bytes,
          .offloads = GetParam().offloads,
          .is_ipv6 = GetParam().is_ipv6});
  }
};

TEST_P(BulkTap, EverySizeArrivesBothWays) {
  open_shape();
  const std::size_t mss = GetParam().mtu_bytes - (GetParam().is_ipv6 ? 72U : 52U);
  for (const std::size_t size : {std::size_t{0}, std::size_t{1}, std::size_t{100}, mss - 1, mss,
                                 mss + 1, 10 * mss, std::size_t{65'536}, std::size_t{1'000'003}}) {
    for (const Opener opener : {Opener::kUs, Opener::kKernel}) {
      make_apps(size, size);
      connect(opener);
      ASSERT_TRUE(run_until([this] { return is_all_delivered(); })) << size;
      finish();
      stack().unlisten(kOurPort.port);
    }
  }
  EXPECT_EQ(stack().counters().rx_malformed, 0U);
  EXPECT_EQ(stack().counters().rx_bad_checksum, 0U);
}

TEST_P(BulkTap, BulkArrivesBothWaysAtOnce) {
  open_shape();
  make_apps(8U << 20, 8U << 20);
  connect(Opener::kKernel);
  ASSERT_TRUE(run_until([this] { return is_all_delivered(); }));
  finish();
}

TEST_P(BulkTap, ManySmallWritesArriveBothWays) {
  open_shape();
  make_apps(100'000, 100'000);
  ours_->set_chunk(37);
  kernel_->set_steps(41, 64);
  connect(Opener::kUs);
  ASSERT_TRUE(run_until([this] { return is_all_delivered(); }));
  finish();
}

INSTANTIATE_TEST_SUITE_P(Links, BulkTap,
                         testing::Values(Shape{"mtu_1500", 1500, false},
                                         Shape{"mtu_1500_super_segments", 1500, true},
                                         Shape{"mtu_9000", 9000, false},
                                         Shape{"mtu_9000_super_segments", 9000, true},
                                         Shape{"ipv6_mtu_1500", 1500, false, true},
                                         Shape{"ipv6_mtu_9000_super_segments", 9000, true, true}),
                         [](const auto& test) { return std::string(test.param.name); });

class BulkControlTap : public TapTest {};

TEST_F(BulkControlTap, TransfersWithEveryCongestionControlOfTheKernel) {
  std::istringstream available(setting("ipv4/tcp_available_congestion_control"));
  std::string names;
  for (std::string name; available >> name;) {
    open();
    make_apps(2U << 20, 2U << 20);
    kernel_->set_congestion_control(name.c_str());
    connect(Opener::kUs);
    EXPECT_EQ(kernel_->congestion_control(), name);
    ASSERT_TRUE(run_until([this] { return is_all_delivered(); })) << name;
    finish();
    start_over();
    names += name + " ";
  }
  RecordProperty("run", names);
  EXPECT_FALSE(names.empty());
}

// The tap delivers packets of up to 64 KiB, as a NIC with LRO would.
TEST_F(BulkControlTap, TheKernelsSuperSegmentsArriveWhole) {
  open();
  make_apps(0, 8U << 20);
  connect(Opener::kKernel);
  ASSERT_TRUE(run_until([this] { return is_all_delivered(); }));
  const link::LinkCounters& counters = host_->link().counters();
  EXPECT_GT(counters.rx_bytes / counters.rx_frames, 3000U);
  finish();
}

TEST_F(BulkControlTap, GoodputIsPrinted) {
  constexpr std::size_t kBytes = 16U << 20;
  for (const std::uint16_t mtu_bytes : {std::uint16_t{1500}, std::uint16_t{9000}}) {
    for (const bool offloads : {false, true}) {
      for (const bool sending : {true, false}) {
        open({.mtu_bytes = mtu_bytes, .offloads = offloads});
        make_apps(sending ? kBytes : 0, sending ? 0 : kBytes);
        const TimePoint start = real_now();
        connect(Opener::kUs);
        ASSERT_TRUE(run_until([this] { return is_all_delivered(); }));
        const double seconds = std::chrono::duration<double>(real_now() - start).count();
        std::printf("  %s, MTU %u, %s: %.2f Gb/s, %zu B resent\n",
                    sending ? "us to the kernel" : "the kernel to us", mtu_bytes,
                    offloads ? "super-segments" : "packet by packet", kBytes * 8e-9 / seconds,
                    static_cast<std::size_t>(stack().counters().tx_retransmitted_bytes));
        finish();
        start_over();
      }
    }
  }
}

}  // namespace
}  // namespace ztcp::interop
