// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// NICs that get another driver and return, and NICs that changed in between.
#include "tools/ztcp_setup/resources/driver.h"

#include <utility>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_setup/bare_machine.h"

namespace ztcp::setup {
namespace {

using test::all_of;
using test::bare_machine;
using test::FakeHost;
using test::kNicA;
using test::kNicB;
using test::set_up;
using test::undo;
using testing::HasSubstr;

TEST(Driver, ANicRefusedByVfioIsGivenBackAtOnce) {
  FakeHost host = bare_machine();
  host.bind_fails = true;
  const auto links = host.state.links;
  const Outcome outcome = set_up(host);
  EXPECT_THAT(all_of(outcome.faults), HasSubstr(kNicA));
  EXPECT_EQ(host.state.nics.at(kNicA).driver, "virtio-pci");
  EXPECT_EQ(host.state.nics.at(kNicB).driver, "virtio-pci");
  EXPECT_EQ(host.state.links, links);
}

TEST(Driver, ANicInUseIsNotRevertedAndTheHolderIsNamed) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  host.holders["/dev/vfio/13"] = {4711, "python3"};
  const auto changes = host.changes;
  const Outcome outcome = undo(host);
  EXPECT_THAT(all_of(outcome.faults), HasSubstr("process 4711 (python3) has /dev/vfio/13 open"));
  EXPECT_THAT(all_of(outcome.faults), HasSubstr(kNicB));
  EXPECT_EQ(host.changes, changes);
}

TEST(Driver, UndoIgnoresNicsThatOnlyResembleTheJournals) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  host.state.nics.at(kNicA).pristine.mac = "52:54:00:00:0c:01";
  host.state.nics.at(kNicA).pristine.permanent_mac = "52:54:00:00:0c:01";
  host.state.nics.at(kNicB).pristine.mac = "52:54:00:00:0c:02";
  host.state.nics.at(kNicB).pristine.permanent_mac = "52:54:00:00:0c:02";
  host.boot();
  const auto links = host.state.links;
  const Outcome outcome = undo(host);
  EXPECT_TRUE(outcome.complete()) << all_of(outcome.faults);
  EXPECT_THAT(all_of(outcome.notes), HasSubstr("0000:3b:00.0: is another NIC (ens1f0, "
                                               "52:54:00:00:0c:01) than set-up took over"));
  EXPECT_EQ(host.state.links, links);
  EXPECT_EQ(host.facts(Journal::kPath).kind, FileKind::kAbsent);
}

TEST(Driver, AnotherCardAtTheAddressIsNotChanged) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  host.boot();
  host.state.nics.at(kNicA).id = "8086:1572";
  auto journal = Journal::open(host);
  const Outcome again = apply_after_boot(host, *journal, {});
  EXPECT_THAT(all_of(again.faults), HasSubstr("is another device (8086:1572)"));
  EXPECT_THAT(all_of(again.faults), HasSubstr("has no vfio group to give access to"));
  EXPECT_EQ(host.state.nics.at(kNicA).driver, "virtio-pci");
  EXPECT_EQ(host.state.nics.at(kNicB).driver, "vfio-pci");
}

TEST(Driver, EqualCardsThatChangedPlacesAreNotChanged) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  std::swap(host.state.nics.at(kNicA).pristine, host.state.nics.at(kNicB).pristine);
  host.boot();
  const auto links = host.state.links;
  auto journal = Journal::open(host);
  const Outcome again = apply_after_boot(host, *journal, {});
  EXPECT_THAT(all_of(again.faults), HasSubstr("is another NIC"));
  EXPECT_EQ(host.state.nics.at(kNicA).driver, "virtio-pci");
  // It has neither name nor MAC nor addresses of the previous NIC.
  EXPECT_EQ(host.state.links, links);
}

TEST(Driver, ANicMissingAtBootIsAFault) {
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

}  // namespace
}  // namespace ztcp::setup
