// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/stats/process_page.h"

#include <filesystem>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "tests/unit/stats/page_fixture.h"

namespace ztcp::stats {
namespace {

class ProcessPageTest : public testing::Test {
 protected:
  ~ProcessPageTest() override { set_process_page(nullptr); }
  PageFolder folder_;
};

TEST_F(ProcessPageTest, IsNullUntilSet) {
  EXPECT_EQ(process_page(), nullptr);
  const auto page = folder_.create();
  set_process_page(page);
  EXPECT_EQ(process_page(), page);
}

TEST_F(ProcessPageTest, IsNullInAForkedChildWhichLeavesTheFileThere) {
  const auto page = folder_.create();
  set_process_page(page);
  const pid_t child = ::fork();
  if (child == 0) {
    end_process_page();
    ::_exit(process_page() == nullptr ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / page->file_name()));
}

TEST_F(ProcessPageTest, FileGoesAtTheEndAndTheMappingStays) {
  const auto page = folder_.create();
  set_process_page(page);
  end_process_page();
  EXPECT_TRUE(std::filesystem::is_empty(folder_.path()));
  page->touch(1);
}

TEST(EndProcessPage, DoesNothingWithoutAPage) { end_process_page(); }

}  // namespace
}  // namespace ztcp::stats
