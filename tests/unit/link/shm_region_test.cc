// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/link/shm_region.h"

#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <sys/resource.h>

#include <gtest/gtest.h>

namespace ztcp::link {
namespace {

constexpr ShmShape kShape{.slot_count = 64, .slot_bytes = 2048};

// Exits with the number of the failed check.
[[noreturn]] void make_beyond_the_limit() {
  const rlimit small{4096, RLIM_INFINITY};
  if (::setrlimit(RLIMIT_FSIZE, &small) != 0) std::_Exit(1);
  Fd fd;
  const auto made = ShmRegion::make(kShape, fd);
  if (made || made.error().sys_errno != EFBIG) std::_Exit(2);
  sigset_t set;
  sigpending(&set);
  if (sigismember(&set, SIGXFSZ) != 0) std::_Exit(3);
  pthread_sigmask(SIG_BLOCK, nullptr, &set);
  std::_Exit(sigismember(&set, SIGXFSZ) == 0 ? 0 : 4);
}

// `ulimit -f`: the kernel's SIGXFSZ would end the process, on any thread.
TEST(ShmRegion, AFileSizeLimitFailsTheLinkAlone) {
  EXPECT_EXIT(make_beyond_the_limit(), testing::ExitedWithCode(0), "");
  Fd fd;
  EXPECT_TRUE(ShmRegion::make(kShape, fd));
}

}  // namespace
}  // namespace ztcp::link
