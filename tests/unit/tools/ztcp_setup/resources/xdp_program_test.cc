// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_setup/resources/xdp_program.h"

#include <cerrno>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_setup/bare_machine.h"

namespace ztcp::setup {
namespace {

using test::all_of;
using test::bare_machine;
using test::expect_same;
using test::FakeHost;
using test::set_up;
using test::undo;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kFolder = "/run/ztcp-bpf/eth1";

Resources program(std::uint32_t last_port = 65535) {
  return {{"the program",
           resource::XdpProgram{"eth1", "10.0.0.5", 7471, 61000, last_port, "", "ztcp"}}};
}

TEST(XdpProgram, IsPinnedForTheGroupAndTakenOffByUndo) {
  FakeHost host = bare_machine();
  const FakeHost::State bare = host.state;
  ASSERT_TRUE(set_up(host, program()).complete());
  EXPECT_EQ(host.state.xdp.at(kFolder).first_port, 61000);
  for (const char* file : {"/sockets", "/program", "/steering"})
    EXPECT_EQ(host.state.nodes.at(std::string(kFolder) + file).ownership,
              (Ownership{0660, 0, 990}));
  EXPECT_FALSE(set_up(host, program()).changed());
  ASSERT_TRUE(undo(host).complete());
  expect_same(host.state, bare);
}

TEST(XdpProgram, AnotherRangeOfPortsTakesItsPlace) {
  FakeHost host = bare_machine();
  const FakeHost::State bare = host.state;
  ASSERT_TRUE(set_up(host, program()).complete());
  ASSERT_TRUE(set_up(host, program(65000)).changed());
  EXPECT_EQ(host.state.xdp.at(kFolder).last_port, 65000);
  ASSERT_TRUE(undo(host).complete());
  expect_same(host.state, bare);
}

TEST(XdpProgram, AFailedAttachmentLeavesNothing) {
  FakeHost host = bare_machine();
  const FakeHost::State bare = host.state;
  host.errors[std::string("attach xdp ") + kFolder] = EOPNOTSUPP;
  const Outcome outcome = set_up(host, program());
  EXPECT_FALSE(outcome.complete());
  EXPECT_THAT(all_of(outcome.faults), HasSubstr("eth1"));
  ASSERT_TRUE(undo(host).complete());
  expect_same(host.state, bare);
}

TEST(XdpProgram, AnotherProgramIsAFaultBeforeAnyChange) {
  FakeHost host = bare_machine();
  host.xdp_obstacles["eth1"] = "has the XDP program cil_xdp (id 7) already";
  EXPECT_THAT(all_of(set_up(host, program()).faults),
              HasSubstr("eth1: has the XDP program cil_xdp (id 7) already; mend: remove it"));
  EXPECT_EQ(host.changes, 0U);
}

// Its connections would be cut.
TEST(XdpProgram, APortThatAnotherProgramUsesIsAFault) {
  constexpr const char* kHeader = "  sl  local_address rem_address   st\n";
  const auto faults = [](const std::string& socket) {
    FakeHost host = bare_machine();
    host.state.values["/proc/net/tcp"] = kHeader + socket;
    const Outcome outcome = set_up(host, program());
    EXPECT_EQ(outcome.complete(), host.changes != 0);
    return all_of(outcome.faults);
  };
  // 0.0.0.0:61000 listens; 10.0.0.5:65535 is connected.
  EXPECT_THAT(faults("   0: 00000000:EE48 00000000:0000 0A\n"),
              HasSubstr("port 61000 of 10.0.0.5 is one of ztcp's and in use"));
  EXPECT_THAT(faults("   0: 0500000A:FFFF 0600000A:0016 01\n"), HasSubstr("sport = :65535"));
  EXPECT_THAT(faults("   0: 0500000A:1D2F 00000000:0000 0A\n"), HasSubstr("port 7471"));
  // Another port, another address, a connection that is over.
  for (const char* other :
       {"   0: 00000000:EE47 00000000:0000 0A\n", "   0: 0100007F:EE48 00000000:0000 0A\n",
        "   0: 0500000A:EE48 0600000A:0016 06\n"})
    EXPECT_THAT(faults(other), IsEmpty());
}

// /proc does not show which sockets are for IPv6 alone.
TEST(XdpProgram, AListenerThatMayBeForIpv6AloneIsAFaultThatSaysSo) {
  FakeHost host = bare_machine();
  host.state.values["/proc/net/tcp6"] =
      "  sl  local_address rem_address   st\n"
      "   0: 00000000000000000000000000000000:EE48 00000000000000000000000000000000:0000 0A\n";
  EXPECT_THAT(all_of(set_up(host, program()).faults),
              HasSubstr("; it listens on [::], which counts also if it is for IPv6 alone"));
  EXPECT_EQ(host.changes, 0U);
}

TEST(XdpProgram, AnUnknownGroupIsAFault) {
  FakeHost host = bare_machine();
  host.groups.clear();
  EXPECT_THAT(all_of(set_up(host, program()).faults), HasSubstr("there is no group ztcp"));
  EXPECT_EQ(host.changes, 0U);
}

// A reboot empties the file system, and the kernel forgets the program.
TEST(XdpProgram, IsAppliedAgainAfterABoot) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host, program()).complete());
  host.boot();
  EXPECT_THAT(host.state.xdp, IsEmpty());
  ASSERT_TRUE(set_up(host, program()).complete());
  EXPECT_TRUE(host.state.xdp.contains(kFolder));
}

}  // namespace
}  // namespace ztcp::setup
