// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Windows that close, open by a few bytes and open again, updates that are lost, and a poller that
// is away. Our window never closes: the user of a Stream takes every byte at once.
#include <thread>

#include "tests/interop/tap_test.h"
#include "transport/wire/frame_parser.h"

namespace ztcp::interop {
namespace {

class WindowTap : public TapTest {
 protected:
  // Returns once the kernel's user has stopped reading and its window is shut.
  void fill_the_kernel() {
    kernel_->set_reading(false);
    std::uint64_t acked = 0;
    // Full when 100 ms and 200 turns bring no more.
    do {
      acked = ours_->acked();
      ASSERT_TRUE(run_for(100ms));
      ASSERT_TRUE(run_turns(200));
    } while (ours_->acked() != acked);
    ASSERT_LT(ours_->acked(), our_data_.size());
  }
};

TEST_F(WindowTap, AShutWindowOfTheKernelIsProbedUntilItOpens) {
  open();
  make_apps(16U << 20, 1000);
  kernel_->set_receive_buffer(64 << 10);
  const KernelCounters counters;
  connect(Opener::kUs);
  fill_the_kernel();
  // The kernel shuts the window in time, or drops bytes that the window allowed, for want of
  // memory, and shuts it then.
  EXPECT_GE(counters["TcpExtTCPToZeroWindowAdv"] + counters["TcpExtTCPRcvQDrop"], 1U);
  const std::uint64_t bytes = stack().counters().tx_bytes;
  for (int probes = 0; probes < 3; ++probes) {
    const std::uint64_t sent = stack().counters().tx_segments;
    ASSERT_TRUE(run_until([&] { return stack().counters().tx_segments > sent; }));
  }
  EXPECT_EQ(stack().counters().tx_bytes, bytes);  // Probes carry no payload.
  kernel_->set_reading(true);
  ASSERT_TRUE(run_until([this] { return is_all_delivered(); }));
  finish();
}

TEST_F(WindowTap, ALostWindowUpdateIsFoundByProbing) {
  Cable& cable = open_cable({});
  make_apps(2U << 20, 0);
  kernel_->set_receive_buffer(64 << 10);
  connect(Opener::kUs);
  fill_the_kernel();
  cable.incoming().cut();
  kernel_->set_reading(true);
  ASSERT_TRUE(run_turns(20));  // The update goes now, and is lost.
  cable.incoming().mend();
  ASSERT_TRUE(run_until([this] { return is_all_delivered(); }));
  finish();
}

TEST_F(WindowTap, AKernelThatReadsInSmallStepsGetsEveryByte) {
  open();
  make_apps(300'000, 0);
  kernel_->set_receive_buffer(8 << 10);
  kernel_->set_steps(700, 1);
  connect(Opener::kUs);
  ASSERT_TRUE(run_until([this] { return is_all_delivered(); }));
  finish();
}

TEST_F(WindowTap, ReceivingGoesOnWhileTheKernelsWindowIsShut) {
  open();
  make_apps(8U << 20, 8U << 20);
  kernel_->set_receive_buffer(64 << 10);
  connect(Opener::kKernel);
  kernel_->set_reading(false);
  // Receiving does not wait for the data that can't be sent.
  ASSERT_TRUE(run_until([this] { return ours_->has_received_all(); }));
  kernel_->set_reading(true);
  ASSERT_TRUE(run_until([this] { return is_all_delivered(); }));
  finish();
}

// The kernel fills our window and goes no further; frames beyond its tap's queue are lost and sent
// again.
TEST_F(WindowTap, APollerThatWasAwayFindsAllItsBytes) {
  open();
  make_apps(4U << 20, 16U << 20);
  connect(Opener::kKernel);
  ASSERT_TRUE(run_until([this] { return ours_->received() > 1U << 20; }));
  std::this_thread::sleep_for(300ms);
  ASSERT_TRUE(run_until([this] { return is_all_delivered(); }));
  finish();
}

}  // namespace
}  // namespace ztcp::interop
