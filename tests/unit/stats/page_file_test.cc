// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/stats/page_file.h"

#include <fstream>
#include <string>
#include <unistd.h>

#include <gtest/gtest.h>

#include "tests/unit/stats/page_fixture.h"
#include "transport/stats/page_reader.h"

namespace ztcp::stats {
namespace {

namespace fs = std::filesystem;

constexpr std::int64_t kNow = 2'000'000'000;

// The page of a process that died at `updated_s`.
fs::path dead_page(const PageFolder& folder, const std::string& name, std::int64_t updated_s) {
  const fs::path file = folder.path() / name;
  auto content = std::make_unique<PageContent>();
  content->header.updated_realtime_ns = updated_s * 1'000'000'000;
  std::ofstream(file).write(reinterpret_cast<const char*>(content.get()), kPageBytes);
  const timespec times[2] = {{updated_s, 0}, {updated_s, 0}};
  EXPECT_EQ(::utimensat(AT_FDCWD, file.c_str(), times, 0), 0);
  return file;
}

TEST(PageFileTest, StartTicksAreThoseOfAProcess) {
  EXPECT_TRUE(start_ticks_of(static_cast<std::uint32_t>(::getpid())));
  EXPECT_FALSE(start_ticks_of(0));
}

TEST(PageFileTest, OldPagesOfTheDeadAreRemoved) {
  const PageFolder folder;
  const fs::path old = dead_page(folder, "1-1.page", kNow - kMaxDeadSeconds - 1);
  const fs::path recent = dead_page(folder, "1-2.page", kNow - kMaxDeadSeconds + 60);
  const fs::path abandoned = dead_page(folder, ".1-3.page", kNow - 3600);
  const fs::path other = dead_page(folder, "notes.txt", kNow - kMaxDeadSeconds - 1);
  remove_dead_pages(folder.path(), kNow);
  EXPECT_FALSE(fs::exists(old));
  EXPECT_TRUE(fs::exists(recent));
  EXPECT_FALSE(fs::exists(abandoned));
  EXPECT_TRUE(fs::exists(other));
}

TEST(PageFileTest, NewestPagesOfTheDeadStay) {
  const PageFolder folder;
  const auto pages = static_cast<std::int64_t>(kMaxDeadPages) + 3;
  for (std::int64_t i = 0; i < pages; ++i)
    dead_page(folder, "1-" + std::to_string(i) + ".page", kNow - i);
  remove_dead_pages(folder.path(), kNow);
  EXPECT_EQ(find_pages(folder.path())->size(), kMaxDeadPages);
  EXPECT_TRUE(fs::exists(folder.path() / "1-0.page"));
  EXPECT_FALSE(fs::exists(folder.path() / ("1-" + std::to_string(pages - 1) + ".page")));
}

TEST(PageFileTest, PagesOfTheLivingStay) {
  const PageFolder folder;
  const auto page = folder.create();
  remove_dead_pages(folder.path(), kNow * 2);
  EXPECT_TRUE(fs::exists(folder.path() / page->file_name()));
}

TEST(PageFileTest, TemporaryNameIsNoPage) {
  const PageFolder folder;
  auto file = make_page_file(folder.path(), false);
  ASSERT_TRUE(file);
  EXPECT_TRUE(find_pages(folder.path())->empty());
  ASSERT_TRUE(publish_page_file(*file));
  EXPECT_EQ(find_pages(folder.path())->size(), 1U);
  unmap_page(file->content);
}

TEST(PageFileTest, SharedFolderIsMadeForAllUsersOfRunDir) {
  const PageFolder folder;
  fs::permissions(folder.path(), fs::perms::all);
  auto file = make_page_file(folder.path() / "stats", true);
  ASSERT_TRUE(file);
  const fs::perms mode = fs::status(folder.path() / "stats").permissions();
  EXPECT_EQ(mode, fs::perms::all | fs::perms::sticky_bit);
  unmap_page(file->content);
}

}  // namespace
}  // namespace ztcp::stats
