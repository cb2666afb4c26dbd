// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/msg/copy_jobs.h"

#include <algorithm>
#include <span>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/msg/lazy_workers.h"
#include "transport/msg/recv_message.h"

namespace ztcp::msg {
namespace {

struct Client final : CopyClient {
  void on_copied(TimePoint, RecvMessage&) override {}
};

class CopyJobsTest : public testing::Test {
 protected:
  static constexpr std::size_t kPieceBytes = 8192;  // Two make a stretch.

  CopyJobsTest() {
    workers_.jobs = &jobs_;
    for (std::size_t i = 0; i < from_.size(); ++i) from_[i] = static_cast<std::byte>(i % 251);
    message_.start(to_, /*tag=*/0);
  }
  void copy_all() {
    CopyTrack track;
    for (std::size_t at = 0; at < from_.size(); at += kPieceBytes)
      jobs_.copy(client_, message_, track, at, std::span(from_).subspan(at, kPieceBytes));
  }

  LazyWorkers workers_;
  Loans loans_;
  CopyJobs jobs_{{.workers = 1}, workers_, loans_};
  Client client_;
  RecvMessage message_;
  std::vector<std::byte> from_ = std::vector<std::byte>(8 * kPieceBytes);
  std::vector<std::byte> to_ = std::vector<std::byte>(from_.size());
};

TEST_F(CopyJobsTest, WithoutFramesToLendNoWorkerIsWaitedFor) {
  loans_.left = 2;
  copy_all();
  EXPECT_EQ(workers_.waits, 0U) << "the worker has the first stretch alone, and all of it";
  EXPECT_TRUE(
      std::equal(from_.begin() + 2 * kPieceBytes, from_.end(), to_.begin() + 2 * kPieceBytes));
  jobs_.settle({}, client_);
  EXPECT_EQ(to_, from_);
}

TEST_F(CopyJobsTest, TheRestOfAStretchIsCopiedAfterTheWorkersPieces) {
  loans_.left = 3;
  copy_all();
  EXPECT_EQ(workers_.waits, 1U);
  EXPECT_EQ(to_, from_);
}

}  // namespace
}  // namespace ztcp::msg
