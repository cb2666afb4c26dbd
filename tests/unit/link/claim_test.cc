// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/claim.h"

#include <chrono>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <functional>
#include <optional>
#include <poll.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <gtest/gtest.h>

namespace ztcp::link {
namespace {

using std::chrono::steady_clock;

class ClaimTest : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = testing::TempDir() + "claimXXXXXX";
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    folder_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  // Runs `body` in a forked child; true when it returned true there.
  static bool in_child(const std::function<bool()>& body) {
    const pid_t child = fork();
    if (child == 0) _exit(body() ? 0 : 1);
    int status = -1;
    waitpid(child, &status, 0);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
  }

  std::string folder_;
};

TEST_F(ClaimTest, IsFreeAgainWhenItsOwnerReleasesIt) {
  {
    auto claim = Claim::take(folder_, "0000:3b:00.0");
    ASSERT_TRUE(claim);
    EXPECT_FALSE(in_child([&] { return Claim::take(folder_, "0000:3b:00.0").has_value(); }));
    EXPECT_TRUE(in_child([&] { return Claim::take(folder_, "0000:3c:00.0").has_value(); }));
  }
  EXPECT_TRUE(in_child([&] { return Claim::take(folder_, "0000:3b:00.0").has_value(); }));
}

TEST_F(ClaimTest, NamesItsHolder) {
  const auto claim = Claim::take(folder_, "nic");
  ASSERT_TRUE(claim);
  const pid_t owner = getpid();
  EXPECT_TRUE(in_child([&] {
    ClaimHolder holder;
    const auto second = Claim::take(folder_, "nic", "", &holder);
    return !second && second.error().code == Errc::kBusy && holder.pid == owner &&
           to_string(holder).find(std::to_string(owner)) != std::string::npos;
  }));
}

TEST_F(ClaimTest, ASecondAttemptOfTheSameProcessFailsAndKeepsTheFirst) {
  const auto claim = Claim::take(folder_, "nic");
  ASSERT_TRUE(claim);
  ClaimHolder holder;
  const auto second =
      Claim::take(folder_ + "/../" + folder_.substr(folder_.rfind('/') + 1), "nic", "", &holder);
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::kBusy);
  EXPECT_EQ(holder.pid, getpid());
  // The attempt must not have opened and closed the file: that would have dropped the lock.
  EXPECT_FALSE(in_child([&] { return Claim::take(folder_, "nic").has_value(); }));
}

TEST_F(ClaimTest, AForkedChildNeitherHasItNorLosesIt) {
  auto claim = std::optional(Claim::take(folder_, "nic"));
  ASSERT_TRUE(*claim);
  EXPECT_FALSE(in_child([&] { return Claim::take(folder_, "nic").has_value(); }));
  // The child destroys its copy of the object; the lock is still the parent's.
  EXPECT_TRUE(in_child([&] {
    claim.reset();
    return true;
  }));
  EXPECT_FALSE(in_child([&] { return Claim::take(folder_, "nic").has_value(); }));
}

// A rank is killed with kill -9 while its forked child lives on: the next job must get the NIC
// within 5 s.
TEST_F(ClaimTest, SurvivorsOfAKilledOwnerDoNotHoldIt) {
  int ready[2];
  ASSERT_EQ(pipe2(ready, O_CLOEXEC), 0);
  const pid_t owner = fork();
  if (owner == 0) {
    const auto claim = Claim::take(folder_, "nic");
    const pid_t loader = fork();  // The data loader, which outlives its rank.
    if (loader == 0) {
      pause();
      _exit(0);
    }
    const bool ok = claim.has_value();
    const ssize_t told = write(ready[1], ok ? &loader : nullptr, ok ? sizeof(loader) : 0);
    if (told < 0) _exit(1);
    pause();
    _exit(0);
  }
  pid_t loader = 0;
  ASSERT_EQ(read(ready[0], &loader, sizeof(loader)), static_cast<ssize_t>(sizeof(loader)));
  EXPECT_FALSE(Claim::take(folder_, "nic")) << "the owner has it";
  ASSERT_EQ(kill(owner, SIGKILL), 0);
  const auto deadline = steady_clock::now() + std::chrono::seconds(5);
  bool taken = false;
  while (!taken && steady_clock::now() < deadline) taken = Claim::take(folder_, "nic").has_value();
  EXPECT_TRUE(taken);
  EXPECT_EQ(kill(loader, 0), 0) << "the loader lives";
  kill(loader, SIGKILL);
  waitpid(owner, nullptr, 0);
  close(ready[0]);
  close(ready[1]);
}

TEST_F(ClaimTest, ReportsWhyItCannotUseTheFolder) {
  const auto claim = Claim::take("/proc/no-such-folder", "nic");
  ASSERT_FALSE(claim);
  EXPECT_EQ(claim.error().code, Errc::kSystem);
  EXPECT_NE(claim.error().sys_errno, 0);
}

TEST_F(ClaimTest, MakesTheFolder) {
  EXPECT_TRUE(Claim::take(folder_ + "/run", "nic"));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/run/nic.lock"));
}

// vfio gives a group to one process, which may have all of its NICs.
TEST_F(ClaimTest, NicsOfOneGroupGoToOneProcess) {
  const pid_t owner = getpid();
  auto first = std::optional(Claim::take(folder_, "0000:03:00.0", "17"));
  ASSERT_TRUE(*first);
  const auto refused_to_others = [&] {
    ClaimHolder holder;
    const auto other = Claim::take(folder_, "0000:03:00.1", "17", &holder);
    return !other && other.error().code == Errc::kBusy && holder.pid == owner;
  };
  EXPECT_TRUE(in_child(refused_to_others));
  EXPECT_TRUE(in_child([&] { return Claim::take(folder_, "0000:04:00.0", "18").has_value(); }));

  auto second = std::optional(Claim::take(folder_, "0000:03:00.1", "17"));
  ASSERT_TRUE(*second);
  const auto again = Claim::take(folder_, "0000:03:00.1", "17");
  ASSERT_FALSE(again) << "but each NIC once";
  EXPECT_EQ(again.error().code, Errc::kBusy);

  first.reset();
  EXPECT_TRUE(in_child(refused_to_others)) << "until the last of them is let go";
  second.reset();
  EXPECT_TRUE(in_child([&] { return Claim::take(folder_, "0000:03:00.1", "17").has_value(); }));
  EXPECT_TRUE(std::filesystem::exists(folder_ + "/group-17.lock"));
}

mode_t mode_of(const std::string& path) {
  struct stat file {};
  return stat(path.c_str(), &file) == 0 ? file.st_mode & 07777U : 0;
}

TEST_F(ClaimTest, OtherUsersMayLockItUnderAnyUmask) {
  ASSERT_EQ(chmod(folder_.c_str(), 01777), 0);
  const mode_t before = umask(077);
  const auto claim = Claim::take(folder_, "nic");
  umask(before);
  ASSERT_TRUE(claim);
  EXPECT_EQ(mode_of(folder_ + "/nic.lock"), 0666U);
}

// If a user could make run_dir a link, root would otherwise put a file into a system folder.
TEST_F(ClaimTest, InAPrivateFolderTheFileIsPrivate) {
  std::filesystem::create_directory(folder_ + "/system");
  ASSERT_EQ(chmod((folder_ + "/system").c_str(), 0755), 0);
  std::filesystem::create_directory_symlink(folder_ + "/system", folder_ + "/run");
  EXPECT_TRUE(Claim::take(folder_ + "/run", "nic"));
  EXPECT_EQ(mode_of(folder_ + "/system/nic.lock"), 0600U);
}

TEST_F(ClaimTest, AFileInPlaceOfTheFolderIsReported) {
  std::ofstream(folder_ + "/run") << "x";
  const auto claim = Claim::take(folder_ + "/run", "nic");
  ASSERT_FALSE(claim);
  EXPECT_EQ(claim.error().sys_errno, ENOTDIR);
  const std::string told = describe_failed_claim(claim.error(), folder_ + "/run/nic.lock");
  EXPECT_NE(told.find("run_dir must be a folder"), std::string::npos) << told;
}

TEST_F(ClaimTest, TooFewDescriptorsAreReported) {
  EXPECT_TRUE(in_child([&] {
    const rlimit none{3, 3};
    setrlimit(RLIMIT_NOFILE, &none);
    const auto claim = Claim::take(folder_, "nic");
    return !claim &&
           describe_failed_claim(claim.error(), "x").find("ulimit -n") != std::string::npos;
  }));
}

TEST_F(ClaimTest, AnExistingFileKeepsItsMode) {
  std::ofstream(folder_ + "/nic.lock") << "";
  ASSERT_EQ(chmod((folder_ + "/nic.lock").c_str(), 0600), 0);
  EXPECT_TRUE(Claim::take(folder_, "nic"));
  EXPECT_EQ(mode_of(folder_ + "/nic.lock"), 0600U);
}

// Files that others may have placed in a world-writable folder.
struct Placed {
  const char* name;
  void (*place)(const std::string& own, const std::string& lock);
};
class PlacedByOthers : public ClaimTest, public testing::WithParamInterface<Placed> {};

TEST_P(PlacedByOthers, IsNoLockFileAndStaysAsItIs) {
  const std::string own = folder_ + "/own";
  std::ofstream(own) << "secret";
  ASSERT_EQ(chmod(own.c_str(), 0600), 0);
  GetParam().place(own, folder_ + "/nic.lock");
  const auto claim = Claim::take(folder_, "nic");
  ASSERT_FALSE(claim);
  EXPECT_NE(claim.error().code, Errc::kBusy);
  EXPECT_NE(describe_failed_claim(claim.error(), folder_ + "/nic.lock").find("remove it"),
            std::string::npos);
  EXPECT_EQ(mode_of(own), 0600U);
}

INSTANTIATE_TEST_SUITE_P(
    Kinds, PlacedByOthers,
    testing::Values(
        Placed{"HardLink",
               [](const std::string& own, const std::string& lock) {
                 std::filesystem::create_hard_link(own, lock);
               }},
        Placed{"SymbolicLink",
               [](const std::string& own, const std::string& lock) {
                 std::filesystem::create_symlink(own, lock);
               }},
        Placed{"Fifo", [](const std::string&,
                          const std::string& lock) { ASSERT_EQ(mkfifo(lock.c_str(), 0666), 0); }},
        Placed{"Folder", [](const std::string&,
                            const std::string& lock) { std::filesystem::create_directory(lock); }}),
    [](const auto& row) { return row.param.name; });

// Another name of a file that this process holds: opening and closing it would drop the lock.
TEST_F(ClaimTest, ALinkToAHeldFileLeavesItHeld) {
  const auto claim = Claim::take(folder_, "nic");
  ASSERT_TRUE(claim);
  std::filesystem::create_hard_link(folder_ + "/nic.lock", folder_ + "/other.lock");
  EXPECT_FALSE(Claim::take(folder_, "other"));
  std::filesystem::remove(folder_ + "/other.lock");
  EXPECT_FALSE(in_child([&] { return Claim::take(folder_, "nic").has_value(); }));
}

}  // namespace
}  // namespace ztcp::link
