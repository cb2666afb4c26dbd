// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/resources/value.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_setup/bare_machine.h"
#include "tools/ztcp_setup/run/preview.h"
#include "tools/ztcp_setup/run/run.h"

namespace ztcp::setup {
namespace {

using test::all_of;
using test::all_resources;
using test::bare_machine;
using test::expect_same;
using test::FakeHost;
using test::kNicB;
using test::kPages0;
using test::set_up;
using test::undo;
using testing::Contains;
using testing::HasSubstr;

TEST(Value, FewerPagesThanWantedIsAFaultWithBothNumbersAndTheRestGoesOn) {
  FakeHost host = bare_machine();
  host.state.largest_pages = 12;
  const FakeHost::State bare = host.state;
  const Outcome outcome = set_up(host);
  EXPECT_THAT(all_of(outcome.faults), HasSubstr("gave 12 of 20"));
  EXPECT_THAT(host.log, Contains("write /proc/sys/vm/compact_memory 1"));
  EXPECT_EQ(host.state.nics.at(kNicB).driver, "vfio-pci");
  EXPECT_TRUE(undo(host).complete());
  expect_same(host.state, bare);
}

TEST(Value, PagesFromTheNextBootCountAsOurs) {
  FakeHost host = bare_machine();
  host.state.largest_pages = 12;
  EXPECT_FALSE(set_up(host).complete());
  host.state.values[kPages0] = "20";  // From the kernel's command line.
  EXPECT_TRUE(set_up(host).complete());
  ASSERT_TRUE(undo(host).complete());
  EXPECT_EQ(host.state.values.at(kPages0), "0");
}

TEST(Value, UndoRemovesPagesFromTheNextBoot) {
  FakeHost host = bare_machine();
  host.state.largest_pages = 12;
  EXPECT_FALSE(set_up(host).complete());
  host.boot();
  EXPECT_EQ(host.state.values.at(kPages0), "20");
  ASSERT_TRUE(undo(host).complete());
  EXPECT_EQ(host.state.values.at(kPages0), "0");
}

TEST(Value, MorePagesThanWantedAreNotChanged) {
  FakeHost host = bare_machine();
  host.state.values[kPages0] = "64";
  ASSERT_TRUE(set_up(host).complete());
  EXPECT_EQ(host.state.values.at(kPages0), "64");
  ASSERT_TRUE(undo(host).complete());
  EXPECT_EQ(host.state.values.at(kPages0), "64");
}

TEST(Value, UndoRemovesOnlyItsOwnPages) {
  FakeHost host = bare_machine();
  host.state.values[kPages0] = "4";
  ASSERT_TRUE(set_up(host).complete());
  host.state.values[kPages0] = "30";  // Another program added 10.
  ASSERT_TRUE(undo(host).complete());
  EXPECT_EQ(host.state.values.at(kPages0), "14");
}

TEST(Value, UndoAfterAReductionFreesAllPages) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  Resources fewer = all_resources();
  for (Resource& resource : fewer)
    if (auto* value = std::get_if<resource::Value>(&resource.what)) value->value = "8";
  ASSERT_TRUE(set_up(host, fewer).complete());
  ASSERT_TRUE(undo(host).complete());
  EXPECT_EQ(host.state.values.at(kPages0), "0");
}

}  // namespace
}  // namespace ztcp::setup
