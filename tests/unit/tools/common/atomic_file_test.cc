// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/common/atomic_file.h"

#include <atomic>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "tests/support/tree.h"

namespace ztcp::tools {
namespace {

namespace fs = std::filesystem;

std::size_t entries_of(const std::string& folder) {
  return static_cast<std::size_t>(
      std::distance(fs::directory_iterator(folder), fs::directory_iterator()));
}

TEST(AtomicFile, ReplacesWholeFilesAndLeavesNothingBehind) {
  test::Tree tree;
  const std::string path = tree.path("a.conf");
  ASSERT_TRUE(write_atomically(path, "first, which is longer"));
  ASSERT_TRUE(write_atomically(path, "second"));
  EXPECT_EQ(test::Tree::read(path), "second");
  struct stat info {};
  ASSERT_EQ(::stat(path.c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0644U);
  // A folder in its place cannot be replaced.
  tree.add_folder("b.conf/full");
  const Status status = write_atomically(tree.path("b.conf"), "x");
  ASSERT_FALSE(status);
  EXPECT_STREQ(status.error().where, "rename");
  EXPECT_EQ(entries_of(tree.root()), 2U);
}

// Readers may look at any moment.
TEST(Report, IsReplacedAsAWhole) {
  const test::Tree tree;
  const std::string path = tree.path("a.json");
  const std::string texts[] = {"{" + std::string(100'000, '1'), "{" + std::string(50'000, '2')};
  ASSERT_TRUE(write_report(path, texts[0]));
  std::atomic<bool> stop{false};
  std::thread writer([&] {
    for (int i = 0; !stop; ++i) EXPECT_TRUE(write_report(path, texts[i % 2]));
  });
  for (int i = 0; i < 500; ++i) {
    const std::string seen = test::Tree::read(path);
    ASSERT_TRUE(seen == texts[0] || seen == texts[1]) << seen.size() << " bytes";
  }
  stop = true;
  writer.join();
  EXPECT_EQ(entries_of(tree.root()), 1U);
}

TEST(Report, TakesTheModeOfTheUmask) {
  const test::Tree tree;
  const mode_t before = ::umask(077);
  EXPECT_TRUE(write_report(tree.path("a.json"), "{}"));
  ::umask(before);
  struct stat info {};
  ASSERT_EQ(::stat(tree.path("a.json").c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777U, 0600U);
}

// A mistyped name: as root it may be any file's.
TEST(Report, FilesWithOtherContentAreNotReplaced) {
  test::Tree tree;
  tree.add_file("passwd", "root:x:0:0\n");
  const Status status = write_report(tree.path("passwd"), "{}");
  ASSERT_FALSE(status);
  EXPECT_EQ(status.error().code, Errc::kRefused);
  EXPECT_EQ(test::Tree::read(tree.path("passwd")), "root:x:0:0\n");
  EXPECT_EQ(entries_of(tree.root()), 1U);
}

TEST(Report, ALinkIsNeitherFollowedNorReplaced) {
  test::Tree tree;
  tree.add_file("precious", "{}");
  fs::create_symlink(tree.path("precious"), tree.path("a.json"));
  EXPECT_FALSE(write_report(tree.path("a.json"), "{\"x\": 1}"));
  EXPECT_EQ(test::Tree::read(tree.path("precious")), "{}");
  EXPECT_TRUE(fs::is_symlink(tree.path("a.json")));
  EXPECT_EQ(entries_of(tree.root()), 2U);
}

TEST(Report, PipesAndDevicesAreWrittenToAndKept) {
  const test::Tree tree;
  const std::string path = tree.path("pipe");
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  EXPECT_FALSE(write_report(path, "{}")) << "nobody reads it";
  const int reader = ::open(path.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC);
  EXPECT_TRUE(write_report(path, "{}"));
  char text[3] = {};
  EXPECT_EQ(::read(reader, text, 2), 2);
  EXPECT_STREQ(text, "{}");
  ::close(reader);
  EXPECT_TRUE(fs::is_fifo(path));
  EXPECT_TRUE(write_report("/dev/null", "{}"));
  EXPECT_TRUE(fs::is_character_file("/dev/null"));
  EXPECT_FALSE(write_report(tree.root(), "{}"));
}

TEST(Report, WhetherItCanBeWrittenIsKnownBefore) {
  test::Tree tree;
  EXPECT_TRUE(can_write_report(tree.path("a.json")));
  EXPECT_EQ(entries_of(tree.root()), 0U) << "nothing is left";
  EXPECT_TRUE(can_write_report("/dev/null"));
  EXPECT_FALSE(can_write_report(tree.path("missing/a.json")));
  EXPECT_FALSE(can_write_report(tree.root()));
  tree.add_file("passwd", "root:x:0:0\n");
  ASSERT_FALSE(can_write_report(tree.path("passwd")));
  EXPECT_EQ(can_write_report(tree.path("passwd")).error().code, Errc::kRefused);
  tree.add_file("b.json", "{}");
  EXPECT_TRUE(can_write_report(tree.path("b.json")));
  EXPECT_EQ(test::Tree::read(tree.path("b.json")), "{}");
  fs::create_symlink(tree.path("b.json"), tree.path("link"));
  EXPECT_EQ(can_write_report(tree.path("link")).error().code, Errc::kRefused);
  fs::create_symlink("/dev/null", tree.path("null"));
  EXPECT_TRUE(can_write_report(tree.path("null")));
}

// A loop device without a file behind it: nothing can be damaged.
TEST(Report, DisksAreNotWrittenTo) {
  const test::Tree tree;
  const std::string path = tree.path("disk");
  if (::mknod(path.c_str(), S_IFBLK | 0600, makedev(7, 77)) != 0)
    GTEST_SKIP() << "no right to make a device";
  const int fd = ::open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  if (fd < 0) GTEST_SKIP() << "no right to open it, or no loop devices";
  ::close(fd);
  const Status written = write_report(path, "{}");
  ASSERT_FALSE(written);
  EXPECT_EQ(written.error().code, Errc::kRefused);
  fs::create_symlink(path, tree.path("link"));
  EXPECT_EQ(write_report(tree.path("link"), "{}").error().code, Errc::kRefused);
}

}  // namespace
}  // namespace ztcp::tools
