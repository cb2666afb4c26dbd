// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/stats/page_reader.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

#include "tests/unit/stats/page_fixture.h"

namespace ztcp::stats {
namespace {

namespace fs = std::filesystem;

void wait_for_ever(Page&) {
  for (;;) ::pause();
}

// A process that has a page, and does something until it is killed.
class Owner {
 public:
  explicit Owner(const PageFolder& folder, void (*act)(Page&) = wait_for_ever) {
    int ready[2];
    EXPECT_EQ(::pipe(ready), 0);
    pid_ = ::fork();
    if (pid_ == 0) {
      PageIdentity identity;
      identity.rank = 5;
      const auto page = folder.create(identity);
      DeviceRecord record{};
      record.carrier = static_cast<std::uint32_t>(Carrier::kRdma);
      page->add_device(record);
      static_cast<void>(!::write(ready[1], "1", 1));
      act(*page);
    }
    char byte = 0;
    EXPECT_EQ(::read(ready[0], &byte, 1), 1);
    ::close(ready[0]);
    ::close(ready[1]);
  }
  ~Owner() { kill(); }
  Owner(const Owner&) = delete;
  Owner& operator=(const Owner&) = delete;

  void kill() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = -1;
  }
  std::uint32_t pid() const { return static_cast<std::uint32_t>(pid_); }

 private:
  pid_t pid_ = -1;
};

fs::path only_page(const PageFolder& folder) {
  const auto pages = find_pages(folder.path());
  EXPECT_TRUE(pages && pages->size() == 1);
  return pages && !pages->empty() ? pages->front() : fs::path();
}

TEST(PageReaderTest, PageOutlivesAKilledOwner) {
  const PageFolder folder;
  Owner owner(folder);
  const fs::path file = only_page(folder);
  const auto running = read_page(file);
  ASSERT_TRUE(running) << running.error().where;
  EXPECT_TRUE(running->process.is_running);
  EXPECT_EQ(running->process.pid, owner.pid());
  owner.kill();
  const auto dead = read_page(file);
  ASSERT_TRUE(dead) << dead.error().where;
  EXPECT_FALSE(dead->process.is_running);
  EXPECT_FALSE(dead->process.has_ended_cleanly);
  EXPECT_EQ(dead->process.rank, 5);
  EXPECT_EQ(dead->devices.size(), 1U);
}

TEST(PageReaderTest, ForeignAndTruncatedFilesAreErrors) {
  const PageFolder folder;
  Owner owner(folder);
  const fs::path file = only_page(folder);
  owner.kill();
  EXPECT_FALSE(read_page(folder.path() / "missing.page"));
  EXPECT_FALSE(read_page(folder.path()));
  for (const std::uintmax_t size : {std::uintmax_t{kPageBytes - 1}, std::uintmax_t{5000},
                                    std::uintmax_t{100}, std::uintmax_t{9}, std::uintmax_t{0}}) {
    fs::resize_file(file, size);
    EXPECT_FALSE(read_page(file)) << size;
  }
  std::ofstream(file) << "something else entirely";
  EXPECT_FALSE(read_page(file));
  const fs::path pipe = folder.path() / "pipe.page";
  ASSERT_EQ(::mkfifo(pipe.c_str(), 0600), 0);
  EXPECT_FALSE(read_page(pipe)) << "and it does not wait for a writer";
}

TEST(PageReaderTest, EntriesThatAreBeingWrittenAreWholeOrLeftOut) {
  const PageFolder folder;
  Owner owner(folder, [](Page& page) {
    LaneRow lane = page.take<LaneRecord>();
    LaneRecord record{};
    for (std::uint32_t i = 0;; ++i) {
      record.number = i;
      record.queue_depth = i;
      lane.publish(record);
    }
  });
  const fs::path file = only_page(folder);
  for (int i = 0; i < 20; ++i) {
    const auto snapshot = read_page(file);
    ASSERT_TRUE(snapshot);
    for (const Lane& each : snapshot->lanes) EXPECT_EQ(each.number, each.queue_depth);
  }
}

TEST(PageReaderTest, MissingFolderHasNoPages) {
  const auto pages = find_pages("/nonexistent/stats");
  ASSERT_TRUE(pages);
  EXPECT_TRUE(pages->empty());
}

TEST(PageReaderTest, FolderFollowsRunDirThenTheRuntimeFolder) {
  const PageFolder runtime;
  ::setenv("XDG_RUNTIME_DIR", runtime.path().c_str(), 1);
  EXPECT_EQ(page_folder(""), runtime.path() / "ztcp");
  const auto folders = page_folders("/run/ztcp");
  EXPECT_EQ(folders.front(), "/run/ztcp/stats");
  EXPECT_NE(std::find(folders.begin(), folders.end(), page_folder("")), folders.end());
  EXPECT_EQ(page_folder("/proc"), runtime.path() / "ztcp") << "not a tmpfs";
  struct statfs facts {};
  if (::statfs("/dev/shm", &facts) == 0 && facts.f_type == 0x01021994) {
    EXPECT_EQ(page_folder("/dev/shm"), "/dev/shm/stats");
  }
  ::unsetenv("XDG_RUNTIME_DIR");
  const auto others = page_folders("");
  EXPECT_NE(std::find(others.begin(), others.end(), page_folder("")), others.end());
}

}  // namespace
}  // namespace ztcp::stats
