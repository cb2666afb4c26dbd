// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The functions of rdma-core through their slots, with a library that stands in for it. Each test
// runs in a child: slots stay filled.
#include "transport/link/mlx5/rdma_core.h"

#include <cerrno>
#include <cstdlib>
#include <string>
#include <sys/wait.h>
#include <unistd.h>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "transport/link/mlx5/rdma_core_calls.h"

// As the driver calls them: by a jump each.
#define ZTCP_FUNCTION(name, version) extern "C" const char* name();
ZTCP_RDMA_CORE_CALLS(ZTCP_FUNCTION, ZTCP_FUNCTION, ZTCP_FUNCTION)
#undef ZTCP_FUNCTION

namespace ztcp::link::mlx5 {
namespace {

using testing::HasSubstr;

std::string folder() { return std::getenv("ZTCP_FAKE_RDMA_CORE"); }

struct Fakes {
  explicit Fakes(const std::string& kind) : path(folder() + "/libfake-rdma-core-" + kind + ".so") {}
  std::string path;
  RdmaCoreNames names() const { return {.verbs = path.c_str(), .mlx5 = path.c_str()}; }
};

// Whether the check holds in a child of this process, where all slots are empty.
template <class Check>
bool holds_in_child(const Check& check) {
  const pid_t child = fork();
  if (child == 0) _exit(check() ? 0 : 1);
  int status = -1;
  waitpid(child, &status, 0);
  return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

bool are_empty() {
  for (const RdmaCoreCall& call : rdma_core_calls())
    if (*call.slot != nullptr) return false;
  return true;
}

// The first function with a jump that leads elsewhere; empty: none.
std::string wrong_jump() {
#define ZTCP_RIGHT(name, version) \
  if (std::string(name()) != #name) return #name;
  ZTCP_RDMA_CORE_CALLS(ZTCP_RIGHT, ZTCP_RIGHT, ZTCP_RIGHT)
#undef ZTCP_RIGHT
  return {};
}

TEST(RdmaCore, EachJumpLeadsToTheFunctionOfItsName) {
  EXPECT_TRUE(holds_in_child([] {
    const Fakes whole("whole");
    return are_empty() && load_rdma_core(whole.names()) && wrong_jump().empty();
  }));
}

TEST(RdmaCore, ALibraryWithoutACallIsRefusedByNameAndFillsNoSlot) {
  const Fakes partial("partial");
  const auto loaded = load_rdma_core(partial.names());
  ASSERT_FALSE(loaded);
  EXPECT_EQ(loaded.error(),
            partial.path + " has no mlx5dv_devx_obj_create@MLX5_1.7: rdma-core 36 or newer has it");
  EXPECT_TRUE(are_empty());
}

TEST(RdmaCore, ACallThatCameLaterFailsWhereTheLibraryLacksIt) {
  EXPECT_TRUE(holds_in_child([] {
    const Fakes older("older");
    if (!load_rdma_core(older.names())) return false;
    errno = 0;
    return mlx5dv_dr_action_create_dest_root_table() == nullptr && errno == EOPNOTSUPP &&
           std::string(ibv_alloc_pd()) == "ibv_alloc_pd";
  }));
}

TEST(RdmaCore, LibrariesThatAreNotInstalledAreNamedWithTheirPackage) {
  const Fakes whole("whole");
  const auto no_verbs = load_rdma_core({.verbs = "libibverbs-of-nobody.so.1"});
  ASSERT_FALSE(no_verbs);
  EXPECT_THAT(no_verbs.error(),
              HasSubstr("libibverbs-of-nobody.so.1 is not installed (apt install"));
  const auto no_mlx5 =
      load_rdma_core({.verbs = whole.path.c_str(), .mlx5 = "libmlx5-of-nobody.so.1"});
  ASSERT_FALSE(no_mlx5);
  EXPECT_THAT(no_mlx5.error(), HasSubstr("libmlx5-of-nobody.so.1 is not installed (apt install"));
  EXPECT_TRUE(are_empty());
}

TEST(RdmaCore, TheHostsOwnHasAllThatIsCalled) {
  if (const auto loaded = load_rdma_core(); !loaded) GTEST_SKIP() << loaded.error();
  for (const RdmaCoreCall& call : rdma_core_calls()) EXPECT_NE(*call.slot, nullptr) << call.name;
}

}  // namespace
}  // namespace ztcp::link::mlx5
