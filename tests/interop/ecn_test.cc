// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Congestion marks between our TCP and the kernel's, over a cable that marks at a threshold: each
// side marks its data as capable, echoes marks, and slows down for them. The kernel's counters say
// that it did.
#include "tests/interop/tap_test.h"

namespace ztcp::interop {
namespace {

struct Case {
  const char* name;
  const char* tcp_ecn;  // Linux's setting.
  bool opened_by_us;
};
void PrintTo(const Case& c, std::ostream* out) { *out << c.name; }

class EcnTap : public TapTest, public testing::WithParamInterface<Case> {
 protected:
  static constexpr std::size_t kBytes = 4U << 20;

  void SetUp() override {
    TapTest::SetUp();
    if (!IsSkipped() && !set_setting("ipv4/tcp_ecn", GetParam().tcp_ecn))
      GTEST_SKIP() << "this kernel's tcp_ecn can't be " << GetParam().tcp_ecn;
  }
  Cable& open_marking_cable() {
    const link::Impairment marking{.delay = 500us,
                                   .rate_bits_per_second = 500'000'000,
                                   .queue_limit_bytes = 512U << 10,
                                   .ecn_threshold_bytes = 32U << 10};
    return open_cable({}, marking, marking);
  }
  void transfer(std::size_t our_bytes, std::size_t kernel_bytes) {
    make_apps(our_bytes, kernel_bytes);
    connect(GetParam().opened_by_us ? Opener::kUs : Opener::kKernel);
    ASSERT_TRUE(run_until([this] { return is_all_delivered(); }));
    EXPECT_TRUE(kernel_->info().ecn);
    finish();
  }
};

TEST_P(EcnTap, WeSlowDownForMarks) {
  Cable& cable = open_marking_cable();
  const KernelCounters kernel;
  transfer(kBytes, 0);
  EXPECT_GT(cable.outgoing().counters().marked, 0U);
  EXPECT_GT(kernel["IpExtInCEPkts"], 0U);
  const tcp::Counters& ours = stack().counters();
  EXPECT_GE(ours.ecn_echoes, ours.ecn_reductions);
  EXPECT_GT(ours.ecn_reductions, 0U);
}

TEST_P(EcnTap, TheKernelSlowsDownForMarks) {
  Cable& cable = open_marking_cable();
  const KernelCounters kernel;
  transfer(0, kBytes);
  EXPECT_GT(cable.incoming().counters().marked, 0U);
  EXPECT_GT(stack().counters().rx_ce_segments, 0U);
  EXPECT_GT(kernel["TcpExtTCPDeliveredCE"], 0U);
  EXPECT_LE(cable.incoming().counters().queue_full, 200U);
}

INSTANTIATE_TEST_SUITE_P(Kernel, EcnTap,
                         testing::Values(Case{"we_ask", "1", true}, Case{"kernel_asks", "1", false},
                                         Case{"we_ask_kernel_accepts", "2", true},
                                         Case{"accurate_we_ask", "3", true},
                                         Case{"accurate_kernel_asks", "3", false}),
                         [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace ztcp::interop
