// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The state of a process after EAL has started in it. EAL starts once per process, so each check
// runs in a process of its own, which reports by its exit status (link_peer.cc).
#include "transport/link/eal.h"

#include <algorithm>
#include <cstdlib>
#include <fcntl.h>
#include <filesystem>
#include <ostream>
#include <string>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include <gtest/gtest.h>

#include "config/machine/hugepages.h"
#include "config/machine/live_machine.h"
#include "tests/unit/link/peer.h"

namespace ztcp::link {
namespace {

using test::Peer;

struct Environment {
  const char* name;
  void (*prepare)();
  friend void PrintTo(const Environment& e, std::ostream* out) { *out << e.name; }
};

class EalStart : public testing::TestWithParam<Environment> {
 protected:
  // Exit status of the peer and its output on stdout and stderr.
  std::pair<int, std::string> run(const char* what) {
    int out[2];
    EXPECT_EQ(pipe2(out, O_CLOEXEC), 0);
    Peer peer({what}, [&] {
      dup2(out[1], STDOUT_FILENO);
      dup2(out[1], STDERR_FILENO);
      GetParam().prepare();
    });
    close(out[1]);
    std::string said;
    char letter = 0;
    while (read(out[0], &letter, 1) == 1) said += letter;
    close(out[0]);
    return {peer.wait_for_exit(60), said};
  }
};

TEST_P(EalStart, LeavesTheProcessAsItWas) {
  const auto [status, said] = run("start");
  if (status == 125) GTEST_SKIP() << "becoming another user needs root";
  if (status == 126) GTEST_SKIP() << "the other user may not run programs of this build folder";
  EXPECT_EQ(status, 0);
  EXPECT_EQ(said, "");
}

TEST_P(EalStart, FailsWithoutOutput) {
  const auto [status, said] = run("fail");
  if (status == 125 || status == 126) GTEST_SKIP() << "see LeavesTheProcessAsItWas";
  EXPECT_EQ(status, 0);
  EXPECT_EQ(said, "");
}

TEST_P(EalStart, LeavesTheProcessAsItWasOnHugepages) {
  config::LiveMachine machine;
  const auto offered = config::read_pages(machine);
  const bool enough = std::any_of(offered.begin(), offered.end(), [](const auto& pages) {
    return pages.node <= 0 && pages.page_kib == 2048 && pages.free >= 64;
  });
  if (!enough) GTEST_SKIP() << "fewer than 64 free hugepages of 2 MiB on node 0";
  const auto [status, said] = run("start-hugepages");
  if (status == 125 || status == 126) GTEST_SKIP() << "see LeavesTheProcessAsItWas";
  EXPECT_EQ(status, 0);
  EXPECT_EQ(said, "");
}

// EAL would put its folders there, for any user.
TEST_P(EalStart, MakesNoFolder) {
  std::string folder = testing::TempDir() + "ealXXXXXX";
  ASSERT_NE(mkdtemp(folder.data()), nullptr);
  ASSERT_EQ(chmod(folder.c_str(), 0777), 0);
  setenv("RUNTIME_DIRECTORY", folder.c_str(), 1);
  const auto [status, said] = run("start");
  unsetenv("RUNTIME_DIRECTORY");
  EXPECT_TRUE(std::filesystem::is_empty(folder));
  std::filesystem::remove_all(folder);
  if (status == 125 || status == 126) GTEST_SKIP() << "see LeavesTheProcessAsItWas";
  EXPECT_EQ(status, 0);
}

INSTANTIATE_TEST_SUITE_P(
    Environments, EalStart,
    testing::Values(Environment{"AsIs", [] {}},
                    Environment{"WithoutHomeAndRuntimeDir",
                                [] {
                                  unsetenv("HOME");
                                  unsetenv("XDG_RUNTIME_DIR");
                                }},
                    Environment{"WithAnUnusableRuntimeDir",
                                [] { setenv("XDG_RUNTIME_DIR", "/proc/no-such-folder", 1); }},
                    Environment{"Unprivileged", test::become_nobody},
                    Environment{"UnprivilegedWithAnUnusableRuntimeDir",
                                [] {
                                  setenv("XDG_RUNTIME_DIR", "/proc/no-such-folder", 1);
                                  test::become_nobody();
                                }}),
    [](const auto& row) { return row.param.name; });

}  // namespace
}  // namespace ztcp::link
