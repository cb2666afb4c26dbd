// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Unreadable files, and the environment's part of a config.
#include "config/file/load.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/machine/live_machine.h"
#include "tests/unit/config/file/config_texts.h"

namespace ztcp::config {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class Folder : public testing::Test {
 protected:
  Folder() {
    std::string pattern = (std::filesystem::temp_directory_path() / "ztcp-load-XXXXXX").string();
    path_ = ::mkdtemp(pattern.data());
  }
  ~Folder() override { std::filesystem::remove_all(path_); }
  std::filesystem::path path_;
  LiveMachine machine_;
};

TEST_F(Folder, AMissingFileSaysWhatToRun) {
  const std::string path = path_ / "ztcp.conf";
  const auto result = load(machine_, path);
  EXPECT_FALSE(result.fabric);
  EXPECT_EQ(result.failure, LoadFailure::kMissing);
  ASSERT_EQ(result.problems.size(), 1U);
  EXPECT_THAT(to_string(result.problems[0]), AllOf(HasSubstr(path), HasSubstr("ztcp_setup")));
}

TEST_F(Folder, AFolderIsUnreadable) {
  const auto result = load(machine_, path_);
  EXPECT_EQ(result.failure, LoadFailure::kUnreadable);
  ASSERT_EQ(result.problems.size(), 1U);
  EXPECT_THAT(result.problems[0].what, HasSubstr("is a folder"));
}

// Opening a pipe blocks for ever without its other end.
TEST_F(Folder, APipeIsUnreadableAtOnce) {
  const std::string path = path_ / "it's";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  ::alarm(10);
  const auto result = load(machine_, path);
  ::alarm(0);
  EXPECT_EQ(result.failure, LoadFailure::kUnreadable);
  ASSERT_EQ(result.problems.size(), 1U);
  EXPECT_THAT(result.problems[0].what, HasSubstr("is a pipe"));
  EXPECT_THAT(result.problems[0].mend, HasSubstr("'\\''s'"));
}

TEST_F(Folder, ADeviceIsNotOpened) {
  const auto result = load(machine_, "/dev/null");
  EXPECT_EQ(result.failure, LoadFailure::kUnreadable);
  EXPECT_THAT(result.problems[0].what, HasSubstr("is a device"));
}

TEST_F(Folder, AFileWithoutPermissionIsUnreadable) {
  const std::string path = path_ / "ztcp.conf";
  std::ofstream(path) << with_nic("");
  ::chmod(path.c_str(), 0);
  ::chmod(path_.c_str(), 0755);
  const bool root = ::geteuid() == 0;
  if (root) {
    ASSERT_EQ(::seteuid(65534), 0);
  }
  const auto result = load(machine_, path);
  if (root) {
    ASSERT_EQ(::seteuid(0), 0);
  }
  EXPECT_EQ(result.failure, LoadFailure::kUnreadable);
  ASSERT_EQ(result.problems.size(), 1U);
  EXPECT_THAT(result.problems[0].what, HasSubstr("Permission denied"));
}

}  // namespace
}  // namespace ztcp::config
