// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Set-up and undo on a machine where an operation fails or something is missing: each fault is told
// with what mends it, which set_up() and undo() of bare_machine.h look at.
#include <cerrno>
#include <cstdint>
#include <set>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_setup/bare_machine.h"

namespace ztcp::setup {
namespace {

using test::all_of;
using test::all_resources;
using test::bare_machine;
using test::expect_same;
using test::FakeHost;
using test::kLimits;
using test::kNicA;
using test::kPages0;
using test::set_up;
using test::undo;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(ApplyError, WhicheverOperationFails) {
  const FakeHost bare = bare_machine();
  FakeHost whole = bare;
  ASSERT_TRUE(set_up(whole).complete());
  FakeHost undone = whole;
  ASSERT_TRUE(undo(undone).complete());
  std::size_t faults = 0;
  for (const int error : {EIO, ENOSPC, EROFS, EPERM})
    for (const std::string& operation : std::set(undone.log.begin(), undone.log.end())) {
      SCOPED_TRACE(operation);
      FakeHost host = bare;
      host.errors[operation] = error;
      faults += set_up(host).faults.size();
      host = whole;
      host.errors[operation] = error;
      faults += undo(host).faults.size();
    }
  EXPECT_GT(faults, 50U) << "hardly anything failed";
}

// A disk that is full for a moment: what the journal knew of the machine before must outlive it.
TEST(ApplyError, AJournalThatIsNotSavedOnceForgetsNothing) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  host.boot();
  const FakeHost booted = host;
  const auto set_up_at_boot = [](FakeHost& machine) {
    auto journal = Journal::open(machine);
    return apply_after_boot(machine, *journal, {});
  };
  ASSERT_TRUE(set_up_at_boot(host).complete());
  ASSERT_TRUE(undo(host).complete());
  std::uint64_t failed = 0;
  for (std::uint64_t nth = 1;; ++nth) {
    SCOPED_TRACE(nth);
    FakeHost unlucky = booted;
    unlucky.one_error = {"create /var/lib/ztcp/.journal.json.ztcp-new", nth, ENOSPC};
    const Outcome outcome = set_up_at_boot(unlucky);
    if (unlucky.one_error.nth > 0) break;
    failed += outcome.faults.size();
    EXPECT_TRUE(set_up_at_boot(unlucky).complete());
    EXPECT_TRUE(undo(unlucky).complete());
    expect_same(unlucky.state, host.state);
  }
  EXPECT_GT(failed, 2U);
}

// Placing a file over it would lose it, and undo could not bring it back.
TEST(ApplyError, WhatIsNoFileIsNotReplacedByOne) {
  for (const FileKind kind : {FileKind::kFolder, FileKind::kSocket, FileKind::kOther}) {
    FakeHost host = bare_machine();
    host.add_file(kLimits, "");
    host.state.nodes.at(kLimits).kind = kind;
    const FakeHost::State before = host.state;
    EXPECT_THAT(all_of(set_up(host).faults), HasSubstr("ztcp.conf: is there and is no file"));
    expect_same(host.state, before);
  }
}

// Else undo would not know which arguments were there before, or leave ours there and say it is
// done.
TEST(ApplyError, AGrubbyThatDoesNotTellTheArgumentsIsAFault) {
  const std::string question = "run grubby --info=ALL";
  const FakeHost bare = bare_machine();
  FakeHost host = bare;
  host.errors[question] = EIO;
  EXPECT_THAT(all_of(set_up(host).faults), HasSubstr("grubby does not tell it: injected"));
  EXPECT_EQ(host.state.boot, bare.state.boot);

  host = bare;
  ASSERT_TRUE(set_up(host).complete());
  host.errors[question] = EIO;
  EXPECT_THAT(all_of(undo(host).faults), HasSubstr("grubby does not tell it: injected"));
  host.errors.clear();
  EXPECT_TRUE(undo(host).complete());
  expect_same(host.state, bare.state);
}

TEST(ApplyError, AUnitThatNobodyTellsOfIsDisabledAllTheSame) {
  const FakeHost bare = bare_machine();
  FakeHost host = bare;
  ASSERT_TRUE(set_up(host).complete());
  host.errors["run systemctl is-enabled ztcp-setup.service"] = ETIMEDOUT;
  EXPECT_TRUE(undo(host).complete());
  expect_same(host.state, bare.state);
}

TEST(ApplyError, WhateverIsMissing) {
  const FakeHost bare = bare_machine();
  const auto faults_without = [&](const auto& remove, const Resources& resources) {
    FakeHost host = bare;
    remove(host);
    return all_of(set_up(host, resources).faults);
  };
  EXPECT_THAT(
      faults_without([](FakeHost& host) { host.state.values.erase(kPages0); }, all_resources()),
      HasSubstr("sudo ztcp_setup --pages 1G or 2M"));
  EXPECT_THAT(faults_without([](FakeHost& host) { host.state.nics.erase(kNicA); }, all_resources()),
              HasSubstr("there is no such PCI device; mend: lspci"));
  EXPECT_THAT(faults_without([](FakeHost& host) { host.programs.clear(); }, all_resources()),
              Not(IsEmpty()));
  Resources resources{
      {"vfio without an IOMMU",
       resource::Value{"/sys/module/vfio/parameters/enable_unsafe_noiommu_mode", "Y"}}};
  EXPECT_THAT(faults_without([](FakeHost&) {}, resources), HasSubstr("CONFIG_VFIO_NOIOMMU=y"));
  // A setting that was to come with its module.
  resources = {{"load vfio-pci", resource::Module{"vfio-pci"}},
               {"another", resource::Value{"/sys/module/vfio/parameters/other", "Y"}}};
  EXPECT_THAT(faults_without([](FakeHost&) {}, resources), HasSubstr("ls /sys/module/vfio"));
}

// run_dir = "/tmp" in a config would have closed it to everybody, and given away what is in it.
TEST(ApplyError, AFolderInOtherUseIsNotGivenAway) {
  FakeHost host = bare_machine();
  host.add_folder("/tmp", {01777, 0, 0});
  host.add_folder("/tmp/systemd-private");
  const Resources resources{{"locks", resource::Folder{"/tmp", 02770, "", "ztcp"}}};
  EXPECT_THAT(all_of(set_up(host, resources).faults),
              HasSubstr("/tmp: is 1777 root:root and holds systemd-private: it is not made 2770 "
                        "root:ztcp"));
  EXPECT_EQ(host.changes, 0U);
  host.state.nodes.erase("/tmp/systemd-private");
  // As /run/lock is: its locks are not ztcp's.
  host.add_file("/tmp/group-7.lock", "");
  EXPECT_THAT(all_of(set_up(host, resources).faults),
              HasSubstr("/tmp: is 1777 root:root and is for everybody to write to"));
  EXPECT_EQ(host.changes, 0U);
  host.state.nodes.at("/tmp").ownership = {0755, 0, 0};
  EXPECT_TRUE(set_up(host, resources).complete()) << "locks alone may be ztcp's own";
}

TEST(ApplyError, AFullDisk) {
  FakeHost host = bare_machine();
  host.errors["create /etc/security/limits.d/.ztcp.conf.ztcp-new"] = ENOSPC;
  EXPECT_THAT(all_of(set_up(host).faults), HasSubstr("mend: df -h /etc/security/limits.d"));
}

TEST(ApplyError, ANicThatIsGoneAtBoot) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  host.boot();
  host.state.nics.erase(kNicA);
  auto journal = Journal::open(host);
  const Outcome again = apply_after_boot(host, *journal, {});
  ASSERT_FALSE(again.faults.empty());
  for (const config::Problem& fault : again.faults) {
    EXPECT_FALSE(fault.mend.empty()) << fault.what;
    EXPECT_EQ(fault.where, kNicA);
  }
}

TEST(ApplyError, AFolderBehindTooManyLinks) {
  FakeHost host = bare_machine();
  host.state.nodes["/etc/security/limits.d"] = {FileKind::kLink, {0777, 0, 0}, "limits.d"};
  EXPECT_THAT(all_of(set_up(host).faults), HasSubstr("one link too many; mend: ls -l"));
}

}  // namespace
}  // namespace ztcp::setup
