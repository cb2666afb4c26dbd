// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/resources/module.h"

#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_setup/bare_machine.h"

namespace ztcp::setup {
namespace {

using test::all_of;
using test::bare_machine;
using test::FakeHost;
using test::kNicA;
using test::set_up;
using test::undo;
using testing::HasSubstr;

const Resources kVfio{{"the driver", resource::Module{"vfio-pci"}}};

TEST(Module, AModuleLoadedBeforeStays) {
  FakeHost host = bare_machine();
  host.state.modules.insert("vfio-pci");
  const FakeHost::State bare = host.state;
  EXPECT_FALSE(set_up(host, kVfio).changed());
  EXPECT_TRUE(undo(host).complete());
  test::expect_same(host.state, bare);
}

// Another program gave the device to the module since; unloading would take it away.
TEST(Module, AModuleThatDrivesOtherDevicesStays) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host, kVfio).complete());
  host.state.nics.at(kNicA).driver = "vfio-pci";
  const Outcome undone = undo(host);
  EXPECT_TRUE(undone.complete()) << all_of(undone.faults);
  EXPECT_THAT(all_of(undone.notes), HasSubstr("module vfio-pci: stays: it drives 0000:3b:00.0"));
  EXPECT_TRUE(host.state.modules.contains("vfio-pci"));
}

TEST(Module, AMissingModuleIsAFaultBeforeAnyChange) {
  FakeHost host = bare_machine();
  host.errors["run modprobe --dry-run vfio-pci"] = ENOENT;
  EXPECT_THAT(all_of(set_up(host, kVfio).faults), HasSubstr("mend: install the modules"));
  EXPECT_EQ(host.changes, 0U);
}

TEST(Module, AModuleThatDoesNotLoadIsAFault) {
  FakeHost host = bare_machine();
  host.errors["run modprobe vfio-pci"] = EPERM;  // Locked down.
  EXPECT_THAT(all_of(set_up(host, kVfio).faults), HasSubstr("mend: sudo modprobe vfio-pci"));
}

}  // namespace
}  // namespace ztcp::setup
