// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Set-up and undo on a machine where an operation fails or something is missing: each fault has a
// mend, which set_up() and undo() of bare_machine.h check.
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
using test::kNicA;
using test::kPages0;
using test::set_up;
using test::undo;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(ApplyError, EachFailingOperationIsReportedAndUndone) {
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

// A disk that is full for a moment: the journal's record of the machine before set-up must survive.
TEST(ApplyError, AFailedSaveOfTheJournalLosesNothing) {
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

TEST(ApplyError, EachMissingPreconditionIsAFault) {
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

}  // namespace
}  // namespace ztcp::setup
