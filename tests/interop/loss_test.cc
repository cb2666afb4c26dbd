// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Bad cables between our TCP and the kernel's: each side's loss recovery meets the other's SACK and
// D-SACK. Seeded; the kernel's counters show that recovery took place as it should.
#include <algorithm>

#include "tests/interop/tap_test.h"

namespace ztcp::interop {
namespace {

constexpr std::size_t kBytes = 2U << 20;

struct Case {
  const char* name;
  link::Impairment cable;
  std::uint16_t mtu_bytes = 1500;
};

link::Impairment lossy(double loss) { return {.loss = loss, .delay = 500us}; }

class LossTap : public TapTest, public testing::WithParamInterface<Case> {
 protected:
  void open_bad_cable(std::uint64_t seed) {
    open_cable({.mtu_bytes = GetParam().mtu_bytes}, GetParam().cable, GetParam().cable, seed);
  }
  void report(const char* what, TimePoint start, const KernelCounters& k) {
    const double ms = std::chrono::duration<double, std::milli>(real_now() - start).count();
    const tcp::Counters& c = stack().counters();
    std::printf(
        "  %s: %.0f ms; ours: resent %zu B, recoveries %zu, spurious %zu, rto %zu, tlp %zu; "
        "kernel's: resent %zu, sack recoveries %zu, timeouts %zu, dsack sent %zu, received %zu\n",
        what, ms, static_cast<std::size_t>(c.tx_retransmitted_bytes),
        static_cast<std::size_t>(c.rack_recoveries),
        static_cast<std::size_t>(c.spurious_recoveries), static_cast<std::size_t>(c.rto_fired),
        static_cast<std::size_t>(c.tlp_fired), k["TcpRetransSegs"], k["TcpExtTCPSackRecovery"],
        k["TcpExtTCPTimeouts"], k["TcpExtTCPDSACKOldSent"] + k["TcpExtTCPDSACKOfoSent"],
        k["TcpExtTCPDSACKRecv"] + k["TcpExtTCPDSACKOfoRecv"]);
  }
};

class ShortTap : public TapTest {};

TEST_P(LossTap, WeSendOverABadCable) {
  open_bad_cable(1);
  make_apps(kBytes, 0);
  const KernelCounters kernel;
  const TimePoint start = real_now();
  connect(Opener::kUs);
  ASSERT_TRUE(run_until([this] { return is_all_delivered(); }));
  report("we send", start, kernel);
  const link::Impairment& cable = GetParam().cable;
  if (cable.loss > 0) {
    EXPECT_GE(stack().counters().rack_recoveries, 1U);
  }
  if (cable.duplicate > 0) {
    EXPECT_GE(kernel["TcpExtTCPDSACKOldSent"] + kernel["TcpExtTCPDSACKOfoSent"], 5U);
  }
}

TEST_P(LossTap, TheKernelSendsOverABadCable) {
  open_bad_cable(2);
  make_apps(0, kBytes);
  const KernelCounters kernel;
  const TimePoint start = real_now();
  connect(Opener::kUs);
  ASSERT_TRUE(run_until([this] { return is_all_delivered(); }));
  report("the kernel sends", start, kernel);
  const link::Impairment& cable = GetParam().cable;
  if (cable.loss > 0) {
    EXPECT_GE(kernel["TcpExtTCPSackRecovery"], 1U);
  }
  if (cable.duplicate > 0) {
    EXPECT_GE(kernel["TcpExtTCPDSACKRecv"] + kernel["TcpExtTCPDSACKOfoRecv"], 5U);
  }
}

TEST_P(LossTap, BothSendOverABadCable) {
  open_bad_cable(3);
  make_apps(kBytes, kBytes);
  const KernelCounters kernel;
  const TimePoint start = real_now();
  connect(Opener::kKernel);
  ASSERT_TRUE(run_until([this] { return is_all_delivered(); }));
  report("both send", start, kernel);
  finish();
}

// More handshakes and ends than bytes: any of their frames may be lost.
TEST_F(ShortTap, ManyShortConnectionsSurviveLoss) {
  const link::Impairment bad{.loss = 0.1, .duplicate = 0.05, .reorder = 0.05, .delay = 300us};
  open_cable({}, bad, bad);
  const sim::Bytes up = sim::pattern(5000, 1);
  const sim::Bytes down = sim::pattern(4000, 2);
  struct Pair {
    std::unique_ptr<sim::App> ours;
    std::unique_ptr<KernelApp> kernel;
  };
  std::vector<Pair> pairs(32);
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    Pair& pair = pairs[i];
    pair.ours = std::make_unique<sim::App>(up, down);
    pair.kernel = std::make_unique<KernelApp>(down, up);
    const Endpoint to{kKernelPort.address, static_cast<std::uint16_t>(kKernelPort.port + i)};
    ASSERT_EQ(pair.kernel->listen(to), "");
    const auto stream = stack().connect(real_now(), to, *pair.ours);
    ASSERT_TRUE(stream);
    pair.ours->attach(**stream);
    // Our side ends half of them, the kernel the others.
    if (i % 2 == 0)
      pair.ours->close_when_peer_does();
    else
      pair.ours->close_when_done();
    actors_.emplace_back([&pair, i] {
      pair.kernel->pump();
      if (!pair.kernel->is_open()) return;
      const bool all = pair.kernel->has_received_all() && pair.kernel->has_sent_all();
      if (i % 2 == 0 ? all : pair.kernel->is_peer_closed()) pair.kernel->close();
    });
  }
  ASSERT_TRUE(run_until([&] {
    return stack().unfinished() == 0 && std::all_of(pairs.begin(), pairs.end(), [](auto& pair) {
             return pair.ours->is_finished() && pair.kernel->has_received_all();
           });
  }));
  for (std::size_t i = 0; i < pairs.size(); ++i) {
    const Pair& pair = pairs[i];
    EXPECT_EQ(pair.ours->violation(), "");
    EXPECT_EQ(pair.kernel->violation(), "");
    EXPECT_FALSE(pair.ours->error()) << i;
    EXPECT_EQ(pair.kernel->error(), 0) << i;
    EXPECT_TRUE(pair.ours->has_received_all()) << i;
  }
}

INSTANTIATE_TEST_SUITE_P(
    Cables, LossTap,
    testing::Values(Case{"clean", {.delay = 500us}}, Case{"loss_1", lossy(0.01)},
                    Case{"loss_5", lossy(0.05)}, Case{"loss_5_mtu_9000", lossy(0.05), 9000},
                    Case{"duplicates", {.duplicate = 0.03, .delay = 500us}},
                    Case{"reordering", {.reorder = 0.03, .delay = 500us, .reorder_delay = 700us}},
                    Case{"everything",
                         {.loss = 0.02,
                          .duplicate = 0.02,
                          .reorder = 0.02,
                          .corrupt = 0.01,
                          .delay = 500us,
                          .jitter = 200us}}),
    [](const auto& test) { return std::string(test.param.name); });

}  // namespace
}  // namespace ztcp::interop
