// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/resources/reserved_ports.h"

#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/machine/port_set.h"
#include "tests/unit/tools/ztcp_setup/bare_machine.h"

namespace ztcp::setup {
namespace {

using config::kReservedPorts;
using test::all_of;
using test::bare_machine;
using test::expect_same;
using test::FakeHost;
using test::set_up;
using test::undo;
using testing::HasSubstr;

Resources ports(const char* text = "7471,61000-65535") {
  return {{"ports", resource::ReservedPorts{text}}};
}

TEST(ReservedPorts, AreAddedToThoseOfOthersAndTakenOffByUndo) {
  FakeHost host = bare_machine();
  const FakeHost::State bare = host.state;
  ASSERT_TRUE(set_up(host, ports()).complete());
  EXPECT_EQ(host.state.values.at(kReservedPorts), "7471,8080,61000-65535");
  EXPECT_FALSE(set_up(host, ports()).changed());
  ASSERT_TRUE(undo(host).complete());
  expect_same(host.state, bare);
}

TEST(ReservedPorts, OfOthersThatComeLaterStay) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host, ports()).complete());
  host.state.values[kReservedPorts] = "7471,8080,9000,61000-65535";
  ASSERT_TRUE(undo(host).complete());
  EXPECT_EQ(host.state.values.at(kReservedPorts), "8080,9000,65000");
}

TEST(ReservedPorts, AnotherRangeTakesItsPlace) {
  FakeHost host = bare_machine();
  const FakeHost::State bare = host.state;
  ASSERT_TRUE(set_up(host, ports()).complete());
  ASSERT_TRUE(set_up(host, ports("7471,50000-50999")).changed());
  EXPECT_EQ(host.state.values.at(kReservedPorts), "7471,8080,50000-50999,65000");
  ASSERT_TRUE(undo(host).complete());
  expect_same(host.state, bare);
}

TEST(ReservedPorts, AreReservedAgainAtEachBoot) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host, ports()).complete());
  host.boot();
  EXPECT_EQ(host.state.values.at(kReservedPorts), "8080,65000");
  ASSERT_TRUE(set_up(host, ports()).changed());
  EXPECT_EQ(host.state.values.at(kReservedPorts), "7471,8080,61000-65535");
}

TEST(ReservedPorts, AKernelThatRefusesIsNamed) {
  FakeHost host = bare_machine();
  const FakeHost::State bare = host.state;
  host.errors[std::string("write ") + kReservedPorts + " 7471,8080,61000-65535"] = EROFS;
  const Outcome outcome = set_up(host, ports());
  EXPECT_FALSE(outcome.complete());
  EXPECT_THAT(all_of(outcome.faults), HasSubstr("net.ipv4.ip_local_reserved_ports=7471,8080,"));
  expect_same(host.state, bare);
}

}  // namespace
}  // namespace ztcp::setup
