// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/look/selection.h"

#include <cstdlib>
#include <fstream>
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ztcp::stat {
namespace {

namespace fs = std::filesystem;
using testing::ElementsAre;

class SelectionTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string path = fs::temp_directory_path() / "ztcp-selection-XXXXXX";
    root_ = ::mkdtemp(path.data());
  }
  void TearDown() override { fs::remove_all(root_); }

  fs::path root_;
};

TEST_F(SelectionTest, RootSeesTheFoldersOfAllUsers) {
  for (const char* folder : {"run/user/1000/ztcp", "run/user/0", "run/user/name/ztcp",
                             "dev/shm/ztcp-7", "tmp/ztcp-1001", "tmp/ztcp-x", "tmp/other"})
    fs::create_directories(root_ / folder);
  EXPECT_THAT(
      folders_of_all_users(root_),
      ElementsAre(root_ / "dev/shm/ztcp-7", root_ / "run/user/1000/ztcp", root_ / "tmp/ztcp-1001"));
}

TEST_F(SelectionTest, NamedFolderIsTheOnlyOne) {
  Selection selection;
  selection.folder = root_;
  EXPECT_THAT(*folders_of(selection), ElementsAre(root_));
}

TEST_F(SelectionTest, ConfigNamesItsRunDir) {
  std::ofstream(root_ / "ztcp.conf") << "schema = 1\nrun_dir = \"run\"\n";
  Selection selection;
  selection.config = root_ / "ztcp.conf";
  const auto folders = folders_of(selection);
  ASSERT_TRUE(folders);
  // Where run_dir is on a disk, the pages are in a folder of the user.
  EXPECT_EQ(folders->front(), root_ / "run/stats");
  EXPECT_GT(folders->size(), 1U);
}

TEST_F(SelectionTest, MissingConfigIsAnError) {
  Selection selection;
  selection.config = root_ / "missing.conf";
  const auto folders = folders_of(selection);
  ASSERT_FALSE(folders);
  EXPECT_EQ(folders.error().code, Errc::kBadConfig);
}

}  // namespace
}  // namespace ztcp::stat
