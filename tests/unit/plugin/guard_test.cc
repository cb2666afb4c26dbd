// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "plugin/guard.h"

#include <new>
#include <pthread.h>
#include <stdexcept>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>

#include <gtest/gtest.h>

#include "tests/support/log_capture.h"

namespace ztcp::plugin {
namespace {

TEST(Guard, SuccessIsNotLogged) {
  const test::LogCapture log;
  EXPECT_EQ(guard("isend", []() -> Told<void> { return {}; }), ncclSuccess);
  EXPECT_TRUE(log.warnings().empty());
}

TEST(Guard, AFailureIsLoggedOnce) {
  const test::LogCapture log;
  const auto result =
      guard("regMr", []() -> Told<void> { return report(Errc::kBadConfig, "no {} left", 3); });
  EXPECT_EQ(result, ncclSystemError);
  ASSERT_EQ(log.warnings().size(), 1U);
  EXPECT_EQ(log.warnings()[0], "no 3 left");
}

TEST(Guard, ExceptionsAreCaughtAndLoggedWithTheirEntryPoint) {
  const test::LogCapture log;
  EXPECT_EQ(guard("listen", []() -> Told<void> { throw std::runtime_error("boom"); }),
            ncclInternalError);
  EXPECT_EQ(guard("listen", []() -> Told<void> { throw std::bad_alloc(); }), ncclSystemError);
  EXPECT_EQ(guard("listen", []() -> Told<void> { throw 7; }), ncclInternalError);
  ASSERT_EQ(log.warnings().size(), 3U);
  EXPECT_EQ(log.warnings()[0], "listen: unexpected exception: boom");
  EXPECT_EQ(log.warnings()[1], "listen: out of memory");
  EXPECT_EQ(log.warnings()[2], "listen: unknown exception");
}

TEST(Guard, AThreadMayEndInside) {
  bool went_on = false;
  std::thread([&] {
    guard("test", []() -> Told<void> { pthread_exit(nullptr); });
    went_on = true;
  }).join();
  EXPECT_FALSE(went_on);
}

TEST(Guard, AForkedChildRunsNothing) {
  mark_process();
  const pid_t child = fork();
  if (child == 0) {
    bool ran = false;
    const ncclResult_t result = guard("test", [&]() -> Told<void> {
      ran = true;
      return {};
    });
    _exit(result == ncclSystemError && !ran ? 0 : 1);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
}

TEST(Guard, ADeadPeerReadsAsRemoteError) {
  for (const Errc code : {Errc::kTimedOut, Errc::kPeerClosed, Errc::kRefused, Errc::kProtocol})
    EXPECT_EQ(to_nccl(code), ncclRemoteError) << describe(code);
  EXPECT_EQ(to_nccl(Errc::kInvalidArgument), ncclInvalidArgument);
  EXPECT_EQ(to_nccl(Errc::kTruncated), ncclInvalidUsage);
  EXPECT_EQ(to_nccl(Errc::kNoDevice), ncclSystemError);
}

TEST(Explain, NamesErrnoAndPlace) {
  EXPECT_EQ(explain({Errc::kTimedOut, 0, ""}), describe(Errc::kTimedOut));
  EXPECT_EQ(explain({Errc::kSystem, ENOENT, "open"}),
            std::string(describe(Errc::kSystem)) + " (No such file or directory), at open");
}

}  // namespace
}  // namespace ztcp::plugin
