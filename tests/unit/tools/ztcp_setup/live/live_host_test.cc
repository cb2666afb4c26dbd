// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Programs run on this machine.
#include "tools/ztcp_setup/live/live_host.h"

#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/tree.h"
#include "tools/ztcp_setup/run/run_lock.h"

namespace ztcp::setup {
namespace {

class LivePrograms : public testing::Test {
 protected:
  LivePrograms() : host_(LiveHost::Purpose::kChange, tree_.root()) {
    tree_.add_folder("etc");
    ::chmod(tree_.path("etc").c_str(), 0755);
  }

  test::Tree tree_;
  LiveHost host_;
};

TEST_F(LivePrograms, ProgramsBeyondTheirTimeLimitAreKilled) {
  const auto good =
      host_.run({"sh", "-c", "echo out; echo err >&2; exit 3"}, std::chrono::seconds{30});
  ASSERT_TRUE(good.has_value());
  EXPECT_EQ(good->exit_status, 3);
  EXPECT_EQ(good->output, "out\nerr\n");
  const auto slow = host_.run({"sleep", "100"}, std::chrono::seconds{1});
  ASSERT_TRUE(slow.has_value());
  EXPECT_TRUE(slow->timed_out);
  EXPECT_EQ(host_.run({"no-such-program"}, std::chrono::seconds{1})->exit_status, 127);
  EXPECT_FALSE(host_.has_program("no-such-program"));
}

TEST_F(LivePrograms, TheEndOfLongOutputIsKept) {
  const auto result = host_.run({"sh", "-c", "seq 3000000; echo end"}, std::chrono::seconds{30});
  ASSERT_TRUE(result.has_value());
  EXPECT_THAT(result->output, testing::EndsWith("\n3000000\nend\n"));
  EXPECT_EQ(result->output.size(), 16U << 20U);
}

}  // namespace
}  // namespace ztcp::setup
