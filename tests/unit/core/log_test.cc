// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/core/log.h"

#include <cerrno>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <sys/stat.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace ztcp::log {
namespace {

namespace fs = std::filesystem;

std::string text_of(const fs::path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

// The number of the open descriptor of `path`; -1: none.
int descriptor_of(const fs::path& path) {
  for (const auto& entry : fs::directory_iterator("/proc/self/fd")) {
    std::error_code gone;
    if (fs::read_symlink(entry.path(), gone) == path)
      return std::stoi(entry.path().filename().string());
  }
  return -1;
}

// A thread that is about to write has read the number already: it must not become another file's.
TEST(LogFile, AnotherFileTakesTheSameDescriptor) {
  const fs::path folder = fs::canonical(testing::TempDir());
  const fs::path first = folder / "ztcp-log-test-1";
  const fs::path second = folder / "ztcp-log-test-2";
  fs::remove(first);
  fs::remove(second);
  ASSERT_TRUE(open_file(first.string()));
  warn("one");
  const int number = descriptor_of(first);
  ASSERT_GE(number, 0);
  ASSERT_TRUE(open_file(second.string()));
  warn("two");
  EXPECT_EQ(descriptor_of(second), number);
  EXPECT_EQ(descriptor_of(first), -1);
  EXPECT_NE(text_of(first).find("one"), std::string::npos);
  EXPECT_EQ(text_of(first).find("two"), std::string::npos);
  EXPECT_NE(text_of(second).find("two"), std::string::npos);
  EXPECT_TRUE(open_file(""));
  EXPECT_EQ(descriptor_of(second), -1);
  fs::remove(first);
  fs::remove(second);
}

// In a folder that is open to all, others may have given the name to any of these.
struct Placed {
  const char* name;
  void (*place)(const fs::path& own, const fs::path& log);
};
class LogFileKind : public testing::TestWithParam<Placed> {};

TEST_P(LogFileKind, IsRefusedAtOnceAndStaysAsItIs) {
  const fs::path folder = fs::canonical(testing::TempDir()) / "ztcp-log-kinds";
  fs::remove_all(folder);
  fs::create_directory(folder);
  std::ofstream(folder / "own") << "mine";
  GetParam().place(folder / "own", folder / "log");
  alarm(10);  // Of a FIFO's opening that waits for a reader.
  EXPECT_FALSE(open_file((folder / "log").string()));
  alarm(0);
  warn("lost");
  EXPECT_EQ(text_of(folder / "own"), "mine");
  fs::remove_all(folder);
}

INSTANTIATE_TEST_SUITE_P(
    All, LogFileKind,
    testing::Values(
        Placed{"SymbolicLink",
               [](const fs::path& own, const fs::path& log) { fs::create_symlink(own, log); }},
        Placed{"HardLink",
               [](const fs::path& own, const fs::path& log) { fs::create_hard_link(own, log); }},
        Placed{"Fifo", [](const fs::path&,
                          const fs::path& log) { ASSERT_EQ(mkfifo(log.c_str(), 0666), 0); }},
        Placed{"FifoWithAReader",
               [](const fs::path&, const fs::path& log) {
                 ASSERT_EQ(mkfifo(log.c_str(), 0666), 0);
                 ASSERT_GE(open(log.c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC), 0);
               }},
        Placed{"Folder", [](const fs::path&, const fs::path& log) { fs::create_directory(log); }}),
    [](const auto& row) { return row.param.name; });

TEST(LogFile, ADeviceIsRefused) { EXPECT_FALSE(open_file("/dev/null")); }

TEST(LogFile, AFailureSaysWhyAndLeavesNoFile) {
  const fs::path folder = fs::canonical(testing::TempDir());
  const fs::path file = folder / "ztcp-log-test-3";
  ASSERT_TRUE(open_file(file.string()));
  const Status opened = open_file("/proc/no-such-folder/log");
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().sys_errno, ENOENT);
  EXPECT_EQ(descriptor_of(file), -1);
  fs::remove(file);
}

}  // namespace
}  // namespace ztcp::log
