// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Waits of a receiving session for its copying workers.
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/msg/acceptor_fixture.h"
#include "tests/unit/msg/lazy_workers.h"

namespace ztcp::msg {
namespace {

class RecvCopiesTest : public AcceptorTest {
 protected:
  RecvCopiesTest() { workers_.jobs = &jobs_; }
  void SetUp() override {
    acceptor = std::make_unique<Acceptor>(settings, ClusterKey{}, 8,
                                          std::array<std::uint64_t, 2>{1, 2}, &jobs_);
    ASSERT_TRUE(acceptor->add_listener(kCookie, *this));
  }

  static constexpr std::size_t kStretchBytes = 1024;
  LazyWorkers workers_;
  Loans loans_;
  CopyJobs jobs_{{.workers = 1,
                  .least_message_bytes = 1,
                  .least_piece_bytes = 1,
                  .stretch_bytes = kStretchBytes},
                 workers_,
                 loans_};
};

// Its flow ends in the middle of a unit, which any flow may write again; a worker still has the
// unit's beginning, though the later bytes were copied at once.
TEST_F(RecvCopiesTest, NoWorkerHasACutOffUnitWhenItComesAgain) {
  Peer& peer = greet();
  std::vector<std::byte> buffer(8192, std::byte{0xee});
  post(buffer, 1);
  peer.say(Chunk{false, 8192, 0, 0, 8192});
  loans_.left = 1;
  const std::vector<std::byte> lent(kStretchBytes, std::byte{1});
  peer.hear(lent);
  peer.hear(std::vector<std::byte>(kStretchBytes, std::byte{2}));
  ASSERT_EQ(workers_.waits, 0U);
  ASSERT_EQ(buffer[0], std::byte{0xee}) << "the worker has not come to it";
  ASSERT_EQ(buffer[kStretchBytes], std::byte{2});
  peer.events->on_failed(now, Error{Errc::kTimedOut, 0, "killed"});
  EXPECT_EQ(workers_.waits, 1U);
  EXPECT_EQ(buffer[0], std::byte{1});
}

}  // namespace
}  // namespace ztcp::msg
