// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/core/log.h"

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

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
  open_file(first.string());
  warn("one");
  const int number = descriptor_of(first);
  ASSERT_GE(number, 0);
  open_file(second.string());
  warn("two");
  EXPECT_EQ(descriptor_of(second), number);
  EXPECT_EQ(descriptor_of(first), -1);
  EXPECT_NE(text_of(first).find("one"), std::string::npos);
  EXPECT_EQ(text_of(first).find("two"), std::string::npos);
  EXPECT_NE(text_of(second).find("two"), std::string::npos);
  open_file("");
  EXPECT_EQ(descriptor_of(second), -1);
  fs::remove(first);
  fs::remove(second);
}

}  // namespace
}  // namespace ztcp::log
