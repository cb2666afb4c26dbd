// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The real machine's files, in the test's own folder: files that another user could have prepared
// are not trusted.
#include <array>
#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <sys/inotify.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/tree.h"
#include "tools/ztcp_setup/host/place_file.h"
#include "tools/ztcp_setup/live/live_host.h"
#include "tools/ztcp_setup/run/run_lock.h"
#include "tools/ztcp_setup/run/stop_signal.h"

namespace ztcp::setup {
namespace {

namespace fs = std::filesystem;

class LiveFiles : public testing::Test {
 protected:
  LiveFiles() : host_(LiveHost::Purpose::kChange, tree_.root()) {
    tree_.add_folder("etc");
    ::chmod(tree_.path("etc").c_str(), 0755);
  }
  Ownership mine(std::uint32_t mode) const { return {mode, ::geteuid(), ::getegid()}; }

  test::Tree tree_;
  LiveHost host_;
};

TEST_F(LiveFiles, AFileIsPlacedWithItsModeIndependentOfTheUmask) {
  const auto umask = ::umask(0077);
  ASSERT_TRUE(place_file(host_, "/etc/a.conf", "text\n", mine(0644)));
  ::umask(umask);
  EXPECT_EQ(*host_.read_file("/etc/a.conf"), "text\n");
  EXPECT_EQ(host_.facts("/etc/a.conf").ownership.mode, 0644U);
  EXPECT_EQ(host_.list("/etc"), std::vector<std::string>{"a.conf"});
}

TEST_F(LiveFiles, LeftoversOfAnInterruptedAttemptAreCleared) {
  tree_.add_file("etc/.a.conf.ztcp-new", "hal");
  ASSERT_TRUE(place_file(host_, "/etc/a.conf", "whole\n", mine(0644)));
  EXPECT_EQ(host_.list("/etc"), std::vector<std::string>{"a.conf"});
}

TEST_F(LiveFiles, ALinkAtTheEndIsNeverFollowed) {
  tree_.add_file("etc/shadow", "secret");
  fs::create_symlink("shadow", tree_.path("etc/a.conf"));
  const auto text = host_.read_file("/etc/a.conf");
  ASSERT_FALSE(text.has_value());
  EXPECT_EQ(text.error().code, Errc::kRefused);
  EXPECT_FALSE(host_.create("/etc/a.conf", "mine", mine(0644)));
  EXPECT_FALSE(host_.set_ownership("/etc/a.conf", mine(0666)));
  // Placing replaces the link, not its target.
  ASSERT_TRUE(place_file(host_, "/etc/a.conf", "mine", mine(0644)));
  EXPECT_EQ(test::Tree::read(tree_.path("etc/shadow")), "secret");
  EXPECT_EQ(host_.facts("/etc/a.conf").kind, FileKind::kFile);
}

TEST_F(LiveFiles, AnEmptyPathIsNotTheRootFolder) {
  const Ownership before = host_.facts("/").ownership;
  EXPECT_FALSE(host_.set_ownership("", mine(0600)));
  EXPECT_EQ(host_.facts("/").ownership, before);
}

TEST_F(LiveFiles, AFolderThatOthersMayWriteIsNotWalked) {
  tree_.add_folder("tmp/x");
  ::chmod(tree_.path("tmp").c_str(), 01777);
  const Status made = host_.create("/tmp/x/a", "text", mine(0644));
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().code, Errc::kRefused);
  ::chmod(tree_.path("tmp").c_str(), 0755);
  EXPECT_TRUE(host_.create("/tmp/x/a", "text", mine(0644)));
}

TEST_F(LiveFiles, AFolderOfAnotherUserIsNotWalked) {
  if (::geteuid() != 0) GTEST_SKIP() << "giving a folder away needs root";
  tree_.add_folder("home/x");
  ::chmod(tree_.path("home").c_str(), 0755);
  ASSERT_EQ(::chown(tree_.path("home").c_str(), 1000, 1000), 0);
  const Status made = host_.create("/home/x/a", "text", mine(0644));
  ASSERT_FALSE(made.has_value());
  EXPECT_EQ(made.error().code, Errc::kRefused);
}

TEST_F(LiveFiles, LinksThatOnlyRootCanChangeAreWalked) {
  tree_.add_folder("usr/lib/x");
  for (const char* folder : {"usr", "usr/lib", "usr/lib/x"})
    ::chmod(tree_.path(folder).c_str(), 0755);
  fs::create_symlink("usr/lib", tree_.path("lib"));
  fs::create_symlink("../usr/lib/x", tree_.path("etc/x"));
  ASSERT_TRUE(host_.create("/lib/x/a", "text", mine(0644)));
  EXPECT_EQ(test::Tree::read(tree_.path("usr/lib/x/a")), "text");
  EXPECT_EQ(*host_.read_file("/etc/x/a"), "text");
  // A cycle.
  fs::create_symlink("/loop", tree_.path("loop"));
  const auto text = host_.read_file("/loop/a");
  ASSERT_FALSE(text.has_value());
  EXPECT_EQ(text.error().code, Errc::kRefused);
}

TEST_F(LiveFiles, APipeDoesNotBlock) {
  ASSERT_EQ(::mkfifo(tree_.path("etc/pipe").c_str(), 0644), 0);
  const auto text = host_.read_file("/etc/pipe");
  ASSERT_FALSE(text.has_value());
  EXPECT_EQ(text.error().code, Errc::kRefused);
}

TEST_F(LiveFiles, FoldersAreMadeAndOnlyEmptyOnesRemoved) {
  ASSERT_TRUE(host_.make_folder("/etc/run", mine(01777)));
  EXPECT_EQ(host_.facts("/etc/run").ownership.mode, 01777U);
  tree_.add_file("etc/run/lock", "");
  const Status kept = host_.remove_folder("/etc/run");
  ASSERT_FALSE(kept.has_value());
  EXPECT_EQ(kept.error().sys_errno, ENOTEMPTY);
}

TEST_F(LiveFiles, ValuesAreWrittenAndFailuresReported) {
  tree_.add_file("etc/value", "");
  EXPECT_TRUE(host_.write_value("/etc/value", "7", std::chrono::seconds{10}));
  EXPECT_EQ(host_.read_value("/etc/value"), "7");
  const Status missing = host_.write_value("/etc/none", "7", std::chrono::seconds{10});
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().sys_errno, ENOENT);
}

TEST_F(LiveFiles, AWriteThatHangsIsTimedOut) {
  // The pipe has no reader: opening it for writing blocks for ever.
  ASSERT_EQ(::mkfifo(tree_.path("etc/pipe").c_str(), 0644), 0);
  const Status status = host_.write_value("/etc/pipe", "7", std::chrono::seconds{1});
  ASSERT_FALSE(status.has_value());
  EXPECT_EQ(status.error().code, Errc::kTimedOut);
}

// `ulimit -f`, which sudo passes on, sends a signal that would kill set-up within a change.
TEST_F(LiveFiles, ALimitOfFileSizesIsAFailedWrite) {
  const pid_t child = ::fork();
  if (child == 0) {
    const rlimit limit{4096, 4096};
    if (::setrlimit(RLIMIT_FSIZE, &limit) != 0) ::_exit(1);
    stop_on_signals();
    const Done placed = place_file(host_, "/etc/a.conf", std::string(8192, 'x'), mine(0644));
    ::_exit(!placed && host_.list("/etc").empty() ? 0 : 2);
  }
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

// Only one process at a time can open a vfio group, and a job may be about to.
TEST_F(LiveFiles, ReadOnlyCommandsOpenNoDevice) {
  tree_.add_file("dev/vfio/7", "");
  const Descriptor events(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC));
  ASSERT_GE(::inotify_add_watch(events.get(), tree_.path("dev/vfio/7").c_str(), IN_OPEN), 0);
  const auto opened = [&] {
    std::array<char, 512> event;
    return ::read(events.get(), event.data(), event.size()) > 0;
  };
  LiveHost looking(LiveHost::Purpose::kInspect, tree_.root());
  EXPECT_FALSE(looking.holder_of("/dev/vfio/7"));
  EXPECT_FALSE(opened());
  EXPECT_FALSE(host_.holder_of("/dev/vfio/7"));
  EXPECT_TRUE(opened());
}

}  // namespace
}  // namespace ztcp::setup
