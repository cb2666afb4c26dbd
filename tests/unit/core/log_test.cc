// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/log.h"

#include <cerrno>
#include <csignal>
#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <pthread.h>
#include <string>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <thread>
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

// A thread that is about to write has read the number already: it must not become that of another
// file.
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

TEST(LogFile, LinesNameTheirOrigin) {
  const fs::path log = fs::canonical(testing::TempDir()) / "ztcp-log-origin";
  fs::remove(log);
  const std::string pid = std::to_string(getpid());
  ASSERT_TRUE(open_file(log.string(), "gpu1 rank 3"));
  warn("one");
  EXPECT_NE(text_of(log).find("Z [gpu1 rank 3 pid " + pid + "] WARN one\n"), std::string::npos);
  ASSERT_TRUE(open_file(log.string(), std::string(500, 'h'))) << "it is a log still";
  warn("{:x>2000}", "two");
  EXPECT_NE(text_of(log).find("h pid " + pid + "] WARN xxx"), std::string::npos);
  EXPECT_TRUE(text_of(log).ends_with("x\n")) << "its end is cut off, as ever";
  ASSERT_TRUE(open_file(log.string()));
  info("three");
  EXPECT_NE(text_of(log).find("Z [" + pid + "] INFO three\n"), std::string::npos);
  EXPECT_TRUE(open_file(""));
  fs::remove(log);
}

// Text sent to the sink since bind_sink().
std::string g_said;
void bind_sink() {
  g_said.clear();
  bind([](Level, const char*, int, const char* text) { (g_said += text) += '\n'; });
}

// `ulimit -f`: the kernel's SIGXFSZ would end the process.
TEST(LogFile, AFileSizeLimitDropsLinesAndIsReportedOnce) {
  const fs::path log = fs::canonical(testing::TempDir()) / "ztcp-log-limit";
  fs::remove(log);
  const pid_t child = fork();
  if (child == 0) {
    const rlimit small{1000, RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &small);
    bind_sink();
    if (!open_file(log.string())) _exit(1);
    for (int i = 0; i < 20; ++i) warn("{:0>100}", i);
    const std::string told = "ZTCP_LOG takes no more lines (File too large)";
    const auto first = g_said.find(told);
    if (first == std::string::npos || g_said.find("ulimit -f") == std::string::npos) _exit(2);
    if (g_said.find(told, first + 1) != std::string::npos) _exit(3);
    sigset_t set;
    sigpending(&set);
    if (sigismember(&set, SIGXFSZ) != 0) _exit(4);
    pthread_sigmask(SIG_BLOCK, nullptr, &set);
    if (sigismember(&set, SIGXFSZ) != 0) _exit(5);
    // There is room again.
    const rlimit large{RLIM_INFINITY, RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &large);
    warn("at last");
    _exit(0);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFEXITED(status)) << "killed by signal " << WTERMSIG(status);
  EXPECT_EQ(WEXITSTATUS(status), 0);
  const std::string text = text_of(log);
  const auto gap = text.find(" lines are missing here\n");
  ASSERT_NE(gap, std::string::npos) << text;
  EXPECT_NE(text.find("at last", gap), std::string::npos);
  EXPECT_EQ(text.substr(text.rfind('\n', gap) + 1, 2), "20") << "a line of its own, with its time";
  EXPECT_TRUE(open_file(log.string())) << "it is a log still";
  EXPECT_TRUE(open_file(""));
  fs::remove(log);
}

// The first line of a file that accepted nothing at first must be recognised as ours the next time.
TEST(LogFile, AFileThatRefusedItsFirstLineIsALogLater) {
  const fs::path log = fs::canonical(testing::TempDir()) / "ztcp-log-nothing";
  fs::remove(log);
  const pid_t child = fork();
  if (child == 0) {
    const rlimit none{0, RLIM_INFINITY};
    const rlimit large{RLIM_INFINITY, RLIM_INFINITY};
    setrlimit(RLIMIT_FSIZE, &none);
    if (!open_file(log.string())) _exit(1);
    warn("lost");
    setrlimit(RLIMIT_FSIZE, &large);
    warn("kept");
    _exit(open_file(log.string()) ? 0 : 2);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_NE(text_of(log).find("1 lines are missing here"), std::string::npos);
  fs::remove(log);
}

// A signal that the host process has blocked is still pending afterwards.
TEST(LogFile, APendingSignalOfTheHostStaysPending) {
  const fs::path log = fs::canonical(testing::TempDir()) / "ztcp-log-pending";
  fs::remove(log);
  const pid_t child = fork();
  if (child == 0) {
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGXFSZ);
    pthread_sigmask(SIG_BLOCK, &set, nullptr);
    raise(SIGXFSZ);
    const rlimit small{10, 10};
    setrlimit(RLIMIT_FSIZE, &small);
    if (!open_file(log.string())) _exit(1);
    warn("lost");
    sigpending(&set);
    _exit(sigismember(&set, SIGXFSZ) == 1 ? 0 : 2);
  }
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  fs::remove(log);
}

// A mistyped name: for root it may be that of any file.
TEST(LogFile, AFileWithOtherContentIsLeftAlone) {
  const fs::path file = fs::canonical(testing::TempDir()) / "ztcp-log-passwd";
  const std::string text = "root:x:0:0:root:/root:/bin/bash\n";
  std::ofstream(file) << text;
  const Status opened = open_file(file.string());
  ASSERT_FALSE(opened);
  EXPECT_STREQ(opened.error().where, "its content is not a ztcp log");
  warn("lost");
  EXPECT_EQ(text_of(file), text);
  fs::remove(file);
}

TEST(LogFile, ALogOfEarlierRunsIsContinued) {
  const fs::path log = fs::canonical(testing::TempDir()) / "ztcp-log-again";
  fs::remove(log);
  for (const char* line : {"first", "second"}) {
    ASSERT_TRUE(open_file(log.string()));
    warn("{}", line);
    ASSERT_TRUE(open_file(""));
  }
  EXPECT_NE(text_of(log).find("second"), std::string::npos);
  fs::remove(log);
}

// In a world-writable folder, others may have given the name to any of these.
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
  alarm(10);  // In case opening the FIFO waits for a reader.
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

// As Python's logger does while the interpreter finalises. Swallowing it would end the process.
TEST(Log, LetsALoggerEndItsThread) {
  bind([](Level, const char*, int, const char*) { pthread_exit(nullptr); });
  bool went_on = false;
  std::thread([&] {
    warn("{} of 2", 1);
    went_on = true;
  }).join();
  std::thread([&] {
    write(Level::kInfo, __FILE__, __LINE__, "2 of 2");
    went_on = true;
  }).join();
  bind(nullptr);
  EXPECT_FALSE(went_on);
}

TEST(LogFile, ADeviceIsRefused) { EXPECT_FALSE(open_file("/dev/null")); }

TEST(LogFile, AFailureReportsItsErrnoAndKeepsNoFileOpen) {
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
