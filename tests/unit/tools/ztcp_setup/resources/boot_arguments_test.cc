// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/resources/boot_arguments.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_setup/bare_machine.h"
#include "tools/ztcp_setup/run/preview.h"
#include "tools/ztcp_setup/run/run.h"

namespace ztcp::setup {
namespace {

using test::all_of;
using test::bare_machine;
using test::expect_same;
using test::FakeHost;
using test::set_up;
using test::undo;
using testing::HasSubstr;

TEST(BootArguments, ANewKernelKeepsArgumentsFromBeforeSetUp) {
  FakeHost host = bare_machine();
  host.state.boot = {{"/boot/vmlinuz-1", "ro iommu=pt"}};
  host.state.boot_of_new_kernels = "ro iommu=pt";
  ASSERT_TRUE(set_up(host).complete());
  EXPECT_EQ(host.state.boot_of_new_kernels, "ro iommu=pt hugepages=20");
  host.state.boot["/boot/vmlinuz-2"] = host.state.boot_of_new_kernels;
  ASSERT_TRUE(undo(host).complete());
  EXPECT_EQ(host.state.boot.at("/boot/vmlinuz-1"), "ro iommu=pt");
  EXPECT_EQ(host.state.boot.at("/boot/vmlinuz-2"), "ro iommu=pt");
  EXPECT_EQ(host.state.boot_of_new_kernels, "ro iommu=pt");
}

// Without the answer undo could not know which arguments existed before, or would leave ours and
// report success.
TEST(BootArguments, AGrubbyWithoutAnAnswerIsAFault) {
  const std::string question = "run grubby --info=ALL";
  const FakeHost bare = bare_machine();
  FakeHost host = bare;
  host.errors[question] = EIO;
  EXPECT_THAT(all_of(set_up(host).faults), HasSubstr("grubby does not list it: injected"));
  EXPECT_EQ(host.state.boot, bare.state.boot);

  host = bare;
  ASSERT_TRUE(set_up(host).complete());
  host.errors[question] = EIO;
  EXPECT_THAT(all_of(undo(host).faults), HasSubstr("grubby does not list it: injected"));
  host.errors.clear();
  EXPECT_TRUE(undo(host).complete());
  expect_same(host.state, bare.state);
}

}  // namespace
}  // namespace ztcp::setup
