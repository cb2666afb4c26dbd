// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Undo, and resources that a run reverts because they are no longer wanted.
#include "tools/ztcp_setup/run/revert.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_setup/bare_machine.h"
#include "tools/ztcp_setup/run/preview.h"
#include "tools/ztcp_setup/run/run.h"

namespace ztcp::setup {
namespace {

using test::all_resources;
using test::bare_machine;
using test::expect_same;
using test::FakeHost;
using test::kConfig;
using test::kNicA;
using test::kNicB;
using test::nic_resources;
using test::set_up;
using test::undo;
using testing::HasSubstr;
using testing::Not;

TEST(Revert, UnwantedResourcesAreReverted) {
  FakeHost host = bare_machine();
  const FakeHost::State bare = host.state;
  ASSERT_TRUE(set_up(host).complete());
  Resources fewer = all_resources();
  std::erase_if(fewer, [](const Resource& resource) { return key_of(resource).ends_with(kNicB); });
  ASSERT_TRUE(set_up(host, fewer).complete());
  EXPECT_EQ(host.state.nics.at(kNicA).driver, "vfio-pci");
  EXPECT_EQ(host.state.links.at("ens2f0"), bare.links.at("ens2f0"));
  ASSERT_TRUE(undo(host).complete());
  expect_same(host.state, bare);
}

TEST(Revert, AddingKeepsAppliedResources) {
  FakeHost host = bare_machine();
  const FakeHost::State bare = host.state;
  Resources first = all_resources();
  std::erase_if(first, [](const Resource& resource) { return key_of(resource).ends_with(kNicB); });
  ASSERT_TRUE(set_up(host, first).complete());
  Resources more = nic_resources(kNicB);
  more.push_back({"config", resource::File{kConfig, "schema = 1\n# two NICs\n", 0644, ""}});
  const auto changes = host.log.size();
  ASSERT_TRUE(set_up(host, more, Scope::kMore).complete());
  for (std::size_t i = changes; i < host.log.size(); ++i)
    EXPECT_THAT(host.log[i], Not(HasSubstr(kNicA)));
  EXPECT_EQ(host.state.nics.at(kNicB).driver, "vfio-pci");
  EXPECT_EQ(*host.read_file(kConfig), "schema = 1\n# two NICs\n");
  ASSERT_TRUE(undo(host).complete());
  expect_same(host.state, bare);
}

}  // namespace
}  // namespace ztcp::setup
