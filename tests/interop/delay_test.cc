// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A kernel that delays its acknowledgements, as it does when its user does not reply to the data.
#include <netinet/in.h>
#include <netinet/tcp.h>

#include "tests/interop/tap_test.h"

namespace ztcp::interop {
namespace {

constexpr std::size_t kWrites = 20;
constexpr std::size_t kBytes = 100;  // Size of each write.

class DelayTap : public TapTest {
 protected:
  // The number of writes that were retransmitted although no frame was lost.
  std::uint64_t needless_repeats(bool expecting) {
    open();
    make_apps(kWrites * kBytes, 0);
    ours_->set_chunk(kBytes);
    ours_->write_one_by_one();
    actors_.emplace_back([this] {
      if (kernel_->is_open()) kernel_->set_option(IPPROTO_TCP, TCP_QUICKACK, 0);
    });
    connect(Opener::kUs);
    if (expecting) ours_->expect_late_acks();
    EXPECT_TRUE(run_until([this] { return is_all_delivered(); }));
    const std::uint64_t repeats = stack().counters().tx_retransmitted_bytes / kBytes;
    finish();
    actors_.clear();
    return repeats;
  }
};

TEST_F(DelayTap, DelayedAcksAreNotTakenForLoss) {
  // A busy machine may be later still, now and then.
  EXPECT_LE(needless_repeats(/*expecting=*/true), kWrites / 4);
  start_over();
  EXPECT_GE(needless_repeats(/*expecting=*/false), kWrites / 2) << "this kernel does not delay";
}

}  // namespace
}  // namespace ztcp::interop
