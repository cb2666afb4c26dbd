// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Set-up and undo on a machine in memory, and both killed at every change they make.
#include "tools/ztcp_setup/grant.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <utility>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/tools/setup/fake_host.h"
#include "tools/ztcp_setup/foresee.h"
#include "tools/ztcp_setup/run.h"
#include "tools/ztcp_setup/take_back.h"

namespace ztcp::setup {
namespace {

using test::FakeHost;
using test::Killed;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::SizeIs;

constexpr const char* kNicA = "0000:3b:00.0";
constexpr const char* kNicB = "0000:5e:00.0";
constexpr const char* kPages0 =
    "/sys/devices/system/node/node0/hugepages/hugepages-2048kB/nr_hugepages";
constexpr const char* kGrub = "/etc/default/grub.d/50-ztcp.cfg";
constexpr const char* kLimits = "/etc/security/limits.d/ztcp.conf";
constexpr const char* kUnitFile = "/etc/systemd/system/ztcp-setup.service";
constexpr const char* kConfig = "/usr/local/tfabric/tools/config/ztcp.conf";

NetworkItem item(const std::string& command) { return {"ip " + command, "00", 0}; }

FakeHost::Nic nic(const char* pci, const char* group, const char* name, const char* mac) {
  LinkState pristine;
  pristine.name = name;
  pristine.mac = pristine.permanent_mac = mac;
  pristine.mtu_bytes = 1500;
  pristine.queue_length = 1000;
  pristine.settings = {{"channels", {{"combined", 8}}},
                       {"ring", {{"rx", 256}, {"tx", 256}}},
                       {"features", {{"rx-gro-hw", 1}, {"tx-tcp-segmentation", 1}}}};
  return {pci, "1af4:1041", "virtio-pci", "virtio-pci", "", group, pristine};
}

// A NIC as somebody has set it up: its own MTU, a VLAN, addresses and routes.
LinkState in_use(const FakeHost::Nic& nic, int network) {
  LinkState link = nic.pristine;
  link.mtu_bytes = 9000;
  link.alias = "rail\xff";  // Whatever somebody wrote there.
  link.up = true;
  link.settings = {{"channels", {{"combined", 8}}},
                   {"ring", {{"rx", 4096}, {"tx", 1024}}},
                   {"features", {{"rx-gro-hw", 0}, {"tx-tcp-segmentation", 1}}}};
  link.addresses = {item(fmt::format("address add 10.77.{}.5/24 dev {}", network, link.name))};
  link.neighbours = {item(fmt::format("neighbour add 10.77.{}.1 dev {}", network, link.name))};
  link.routes = {item(fmt::format("route add 10.77.{}.0/24 dev {}", network, link.name)),
                 item(fmt::format("route add 10.99.0.0/16 via 10.77.{}.1", network))};
  LinkState vlan;
  vlan.name = link.name + ".7";
  vlan.kind = "vlan";
  vlan.info = "0700";
  vlan.mac = link.mac;
  vlan.permanent_mac = link.permanent_mac;
  vlan.mtu_bytes = 1400;
  vlan.up = true;
  vlan.addresses = {item(fmt::format("address add 10.78.{}.5/24 dev {}", network, vlan.name))};
  vlan.routes = {item(fmt::format("route add 10.78.{}.0/24 dev {}", network, vlan.name))};
  link.children = {vlan};
  return link;
}

FakeHost bare_machine() {
  FakeHost host;
  const FakeHost::Nic a = nic(kNicA, "12", "ens1f0", "52:54:00:00:00:01");
  const FakeHost::Nic b = nic(kNicB, "13", "ens2f0", "52:54:00:00:00:02");
  host.add_nic(a, in_use(a, 1));
  host.add_nic(b, in_use(b, 2));
  host.add_folder("/etc/security");
  host.add_folder("/etc/security/limits.d");
  host.add_file(kLimits, "# ours\xff\n", {0640, 0, 990});
  host.state.values["grub.cfg"] = "";
  return host;
}

Wishes nic_wishes(const char* pci) {
  return {{fmt::format("{}: virtio-pci -> vfio-pci", pci), wish::Driver{pci, "vfio-pci"}},
          {fmt::format("{}: for group ztcp", pci), wish::Access{pci, "", "ztcp", 0660}}};
}

// In the order of wishes_for().
Wishes all_wishes() {
  Wishes wishes{
      {"pages at boot", wish::File{kGrub, "iommu=pt hugepages=20\n", 0644, ""}},
      {"boot loader", wish::Notice{{"update-grub"}}},
      {"kernel arguments", wish::BootArguments{{"iommu=pt", "hugepages=20"}}},
      {"limits", wish::File{kLimits, "@ztcp - memlock unlimited\n", 0644, ""}},
      {"pages of node 0", wish::Value{kPages0, "20", true}},
      {"mount pages", wish::Mount{"/dev/hugepages1G", "hugetlbfs", "pagesize=1024M,mode=1770"}},
      {"load vfio-pci", wish::Module{"vfio-pci"}},
      {"run folder", wish::Folder{"/usr/local/tfabric/tools/run", 01777, "", "ztcp"}},
  };
  for (const char* pci : {kNicA, kNicB})
    for (Wish& wish : nic_wishes(pci)) wishes.push_back(std::move(wish));
  wishes.push_back({"config", wish::File{kConfig, "schema = 1\n", 0644, ""}});
  wishes.push_back({"unit", wish::File{kUnitFile, "[Unit]\n", 0644, ""}});
  wishes.push_back({"units, read again", wish::Notice{{"systemctl", "daemon-reload"}}});
  wishes.push_back({"set-up at each boot", wish::Unit{"ztcp-setup.service"}});
  return wishes;
}

Outcome set_up(FakeHost& host, const Wishes& wishes = all_wishes(), Scope scope = Scope::kWhole,
               const Conduct& conduct = {}) {
  auto journal = Journal::open(host);
  if (!journal) {
    Outcome outcome;
    outcome.faults.push_back(journal.error());
    return outcome;
  }
  return grant(host, *journal, wishes, scope, conduct);
}

Outcome undo(FakeHost& host) {
  auto journal = Journal::open(host);
  if (!journal) {
    Outcome outcome;
    outcome.faults.push_back(journal.error());
    return outcome;
  }
  return take_back(host, *journal, {});
}

std::string all_of(const config::Problems& problems) {
  std::string text;
  for (const config::Problem& problem : problems) text += to_string(problem) + "\n";
  return text;
}

// Differences that a person can read.
void expect_same(const FakeHost::State& is, const FakeHost::State& wanted) {
  if (is == wanted) return;
  std::string text;
  for (const auto& [path, node] : is.nodes)
    if (!wanted.nodes.contains(path))
      text += "additional " + path + "\n";
    else if (!(wanted.nodes.at(path) == node))
      text += "different " + path + ": " + node.text + "\n";
  for (const auto& [path, node] : wanted.nodes)
    if (!is.nodes.contains(path)) text += "missing " + path + "\n";
  for (const auto& [path, value] : is.values)
    if (!wanted.values.contains(path) || wanted.values.at(path) != value)
      text += "value " + path + " = " + value + "\n";
  for (const auto& [name, link] : wanted.links)
    if (!is.links.contains(name) || !(is.links.at(name) == link)) text += "link " + name + "\n";
  if (is.nics != wanted.nics) text += "NICs\n";
  if (is.modules != wanted.modules) text += "modules\n";
  if (is.mounts != wanted.mounts) text += "mounts\n";
  if (is.boot != wanted.boot || is.boot_of_new_kernels != wanted.boot_of_new_kernels)
    text += "boot arguments\n";
  ADD_FAILURE() << "machines differ:\n" << text;
}

TEST(Grant, TakesTheMachineAndUndoGivesItBack) {
  FakeHost host = bare_machine();
  const FakeHost::State bare = host.state;
  const Outcome granted = set_up(host);
  ASSERT_TRUE(granted.complete()) << all_of(granted.faults);
  EXPECT_EQ(host.state.nics.at(kNicA).driver, "vfio-pci");
  EXPECT_EQ(host.state.nics.at(kNicA).driver_override, "vfio-pci");
  EXPECT_EQ(host.state.nodes.at("/dev/vfio/12").ownership, (Ownership{0660, 0, 990}));
  EXPECT_EQ(host.state.values.at(kPages0), "20");
  EXPECT_EQ(host.state.values.at("grub.cfg"), "iommu=pt hugepages=20\n");
  EXPECT_EQ(host.state.boot.at("/boot/vmlinuz-1"), "ro quiet iommu=pt hugepages=20");
  EXPECT_TRUE(host.state.enabled.contains("ztcp-setup.service"));
  EXPECT_EQ(host.state.nodes.at("/usr/local/tfabric/tools/run").ownership.mode, 01777U);
  EXPECT_EQ(host.state.nodes.at(Journal::kFolder).ownership, (Ownership{0700, 0, 0}));
  EXPECT_EQ(host.state.nodes.at(Journal::kPath).ownership, (Ownership{0600, 0, 0}));

  const Outcome undone = undo(host);
  EXPECT_TRUE(undone.complete()) << all_of(undone.faults);
  expect_same(host.state, bare);
}

TEST(Grant, TheJournalKeepsTheOrderSoThatUndoGoesBackwards) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  std::vector<std::string> wished;
  for (const Wish& wish : all_wishes()) wished.push_back(key_of(wish));
  std::vector<std::string> recorded;
  const auto journal = Journal::open(host);
  ASSERT_TRUE(journal);
  for (const Entry& entry : journal->entries()) recorded.push_back(key_of(entry.wish));
  EXPECT_EQ(recorded, wished);
}

TEST(Grant, DoesNothingTwice) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  const FakeHost::State first = host.state;
  const auto changes = host.changes;
  const Outcome again = set_up(host);
  EXPECT_TRUE(again.complete()) << all_of(again.faults);
  EXPECT_FALSE(again.changed());
  EXPECT_EQ(host.changes, changes);
  expect_same(host.state, first);
  ASSERT_TRUE(undo(host).complete());
  const auto undone = host.changes;
  EXPECT_FALSE(undo(host).changed());
  EXPECT_EQ(host.changes, undone);
}

// Runs `action` until it survives, killed at its first change, its second, and so on.
template <class Action, class Check>
void kill_everywhere(const FakeHost& start, const Action& action, const Check& check) {
  for (const auto when :
       {FakeHost::When::kBefore, FakeHost::When::kHalfWay, FakeHost::When::kAfter}) {
    bool killed = true;
    for (std::uint64_t n = 1; killed; ++n) {
      ASSERT_LT(n, 1000U);
      FakeHost host = start;
      host.kill_at(n, when);
      killed = false;
      try {
        action(host);
      } catch (const Killed&) {
        killed = true;
      }
      host.kill_at(0, when);
      // Only a file can be there in half.
      if (killed && when == FakeHost::When::kHalfWay && !host.log.back().starts_with("create"))
        continue;
      SCOPED_TRACE(fmt::format("killed at change {} ({}): {}", n, static_cast<int>(when),
                               host.log.empty() ? "" : host.log.back()));
      check(host);
      if (testing::Test::HasFailure()) return;
    }
  }
}

TEST(Grant, KilledAnywhereUndoPutsItRight) {
  const FakeHost start = bare_machine();
  kill_everywhere(
      start, [](FakeHost& host) { set_up(host); },
      [&](FakeHost& host) {
        const Outcome undone = undo(host);
        EXPECT_TRUE(undone.complete()) << all_of(undone.faults);
        expect_same(host.state, start.state);
      });
}

TEST(Grant, KilledAnywhereASecondRunPutsItRight) {
  const FakeHost start = bare_machine();
  FakeHost whole = start;
  ASSERT_TRUE(set_up(whole).complete());
  kill_everywhere(
      start, [](FakeHost& host) { set_up(host); },
      [&](FakeHost& host) {
        const Outcome again = set_up(host);
        EXPECT_TRUE(again.complete()) << all_of(again.faults);
        expect_same(host.state, whole.state);
        const Outcome undone = undo(host);
        EXPECT_TRUE(undone.complete()) << all_of(undone.faults);
        expect_same(host.state, start.state);
      });
}

TEST(Grant, AfterACutTheHalfDoneIsTakenBackButForPages) {
  const FakeHost start = bare_machine();
  FakeHost whole = start;
  ASSERT_TRUE(set_up(whole).complete());
  kill_everywhere(
      start, [](FakeHost& host) { set_up(host); },
      [&](FakeHost& host) {
        const std::string pages = host.state.values.at(kPages0);
        auto journal = Journal::open(host);
        ASSERT_TRUE(journal);
        const Outcome back = take_back_half_done(host, *journal, {});
        EXPECT_TRUE(back.complete()) << all_of(back.faults);
        EXPECT_EQ(host.state.values.at(kPages0), pages);
        const Outcome again = set_up(host);
        EXPECT_TRUE(again.complete()) << all_of(again.faults);
        expect_same(host.state, whole.state);
        const Outcome undone = undo(host);
        EXPECT_TRUE(undone.complete()) << all_of(undone.faults);
        expect_same(host.state, start.state);
      });
}

TEST(Grant, UndoKilledAnywhereIsUndoneAgainOrSetUpAgain) {
  const FakeHost start = bare_machine();
  FakeHost whole = start;
  ASSERT_TRUE(set_up(whole).complete());
  kill_everywhere(
      whole, [](FakeHost& host) { undo(host); },
      [&](FakeHost& host) {
        FakeHost other = host;
        const Outcome undone = undo(host);
        EXPECT_TRUE(undone.complete()) << all_of(undone.faults);
        expect_same(host.state, start.state);
        ASSERT_TRUE(set_up(other).complete());
        ASSERT_TRUE(undo(other).complete());
        expect_same(other.state, start.state);
      });
}

TEST(Grant, PowerCutAnywhereUndoOrASecondRunAfterTheBoot) {
  const FakeHost start = bare_machine();
  FakeHost booted = start;
  booted.boot();
  const auto undo_and_compare = [&](FakeHost& host) {
    const Outcome undone = undo(host);
    EXPECT_TRUE(undone.complete()) << all_of(undone.faults);
    // A boot forgets addresses and undo brings them back if it had taken them.
    for (const auto& [name, link] : host.state.links) {
      if (!booted.state.links.contains(name)) {
        EXPECT_THAT(name, HasSubstr(".7"));
      }
    }
    host.state.links = booted.state.links;
    expect_same(host.state, booted.state);
  };
  kill_everywhere(
      start, [](FakeHost& host) { set_up(host); },
      [&](FakeHost& host) {
        host.boot();
        FakeHost other = host;
        undo_and_compare(host);
        const Outcome again = set_up(other);
        EXPECT_TRUE(again.complete()) << all_of(again.faults);
        EXPECT_EQ(other.state.values.at(kPages0), "20");
        undo_and_compare(other);
      });
}

TEST(Grant, StopsBetweenStepsWhenAsked) {
  FakeHost host = bare_machine();
  const FakeHost::State bare = host.state;
  int steps = 0;
  Conduct conduct;
  conduct.stop = [&] { return ++steps > 5; };
  const Outcome stopped = set_up(host, all_wishes(), Scope::kWhole, conduct);
  EXPECT_TRUE(stopped.stopped);
  EXPECT_THAT(stopped.steps, SizeIs(5));
  EXPECT_TRUE(undo(host).complete());
  expect_same(host.state, bare);
}

// `ztcp_setup | head`, a full disk, a terminal that went away.
TEST(Grant, GoesOnWhenNobodyListensAnyMore) {
  Wishes wishes = all_wishes();
  for (Wish& wish : wishes) wish.why += std::string(1000, '.');  // More than stdio holds back.
  EXPECT_EXIT(
      {
        if (std::freopen("/dev/full", "w", stdout) == nullptr) std::_Exit(2);
        FakeHost host = bare_machine();
        const Outcome outcome = set_up(host, wishes, Scope::kWhole, conduct_of(false));
        std::_Exit(outcome.complete() && Journal::open(host)->complete ? 0 : 1);
      },
      testing::ExitedWithCode(0), "");
}

TEST(Grant, ChecksEverythingBeforeItChangesAnything) {
  FakeHost host = bare_machine();
  Wishes wishes = all_wishes();
  wishes.push_back({"no such NIC", wish::Driver{"0000:ff:00.0", "vfio-pci"}});
  wishes.push_back({"no such group", wish::Folder{"/etc/x", 0755, "", "nobody-has-it"}});
  const Outcome outcome = set_up(host, wishes);
  EXPECT_THAT(all_of(outcome.faults), HasSubstr("0000:ff:00.0: there is no such PCI device"));
  EXPECT_THAT(all_of(outcome.faults), HasSubstr("there is no group nobody-has-it"));
  EXPECT_EQ(host.changes, 0U);
}

TEST(Grant, FewerPagesThanWishedIsAFaultWithBothNumbersAndTheRestGoesOn) {
  FakeHost host = bare_machine();
  host.state.largest_pages = 12;
  const FakeHost::State bare = host.state;
  const Outcome outcome = set_up(host);
  EXPECT_THAT(all_of(outcome.faults), HasSubstr("granted 12 of 20"));
  EXPECT_THAT(host.log, Contains("write /proc/sys/vm/compact_memory 1"));
  EXPECT_EQ(host.state.nics.at(kNicB).driver, "vfio-pci");
  EXPECT_TRUE(undo(host).complete());
  expect_same(host.state, bare);
}

TEST(Grant, PagesThatCameWithTheNextBootAreOursToo) {
  FakeHost host = bare_machine();
  host.state.largest_pages = 12;
  EXPECT_FALSE(set_up(host).complete());
  host.state.values[kPages0] = "20";  // From the kernel's command line.
  EXPECT_TRUE(set_up(host).complete());
  ASSERT_TRUE(undo(host).complete());
  EXPECT_EQ(host.state.values.at(kPages0), "0");
}

TEST(Grant, PagesThatCameWithTheNextBootGoWithUndo) {
  FakeHost host = bare_machine();
  host.state.largest_pages = 12;
  EXPECT_FALSE(set_up(host).complete());
  host.boot();
  EXPECT_EQ(host.state.values.at(kPages0), "20");
  ASSERT_TRUE(undo(host).complete());
  EXPECT_EQ(host.state.values.at(kPages0), "0");
}

TEST(Grant, MorePagesThanWishedAreLeftAlone) {
  FakeHost host = bare_machine();
  host.state.values[kPages0] = "64";
  ASSERT_TRUE(set_up(host).complete());
  EXPECT_EQ(host.state.values.at(kPages0), "64");
  ASSERT_TRUE(undo(host).complete());
  EXPECT_EQ(host.state.values.at(kPages0), "64");
}

TEST(Grant, UndoTakesOnlyItsOwnPages) {
  FakeHost host = bare_machine();
  host.state.values[kPages0] = "4";
  ASSERT_TRUE(set_up(host).complete());
  host.state.values[kPages0] = "30";  // Somebody wanted 10 more.
  ASSERT_TRUE(undo(host).complete());
  EXPECT_EQ(host.state.values.at(kPages0), "14");
}

TEST(Grant, FewerPagesWishedLaterAreAllGivenBack) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  Wishes fewer = all_wishes();
  for (Wish& wish : fewer)
    if (auto* value = std::get_if<wish::Value>(&wish.what)) value->value = "8";
  ASSERT_TRUE(set_up(host, fewer).complete());
  ASSERT_TRUE(undo(host).complete());
  EXPECT_EQ(host.state.values.at(kPages0), "0");
}

TEST(Grant, AKernelInstalledSinceKeepsWhatStoodThereWithoutUs) {
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

TEST(Grant, ANicThatVfioRefusesIsGivenBackAtOnce) {
  FakeHost host = bare_machine();
  host.bind_fails = true;
  const auto links = host.state.links;
  const Outcome outcome = set_up(host);
  EXPECT_THAT(all_of(outcome.faults), HasSubstr(kNicA));
  EXPECT_EQ(host.state.nics.at(kNicA).driver, "virtio-pci");
  EXPECT_EQ(host.state.nics.at(kNicB).driver, "virtio-pci");
  EXPECT_EQ(host.state.links, links);
}

TEST(Grant, ANicInUseIsNotTakenBackAndTheHolderIsNamed) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  host.holders["/dev/vfio/13"] = {4711, "python3"};
  const auto changes = host.changes;
  const Outcome outcome = undo(host);
  EXPECT_THAT(all_of(outcome.faults), HasSubstr("process 4711 (python3) holds /dev/vfio/13"));
  EXPECT_THAT(all_of(outcome.faults), HasSubstr(kNicB));
  EXPECT_EQ(host.changes, changes);
}

TEST(Grant, WhatCanNotBeRestoredIsAFaultAndTheRestGoesOn) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  const std::string route = "ip route add 10.99.0.0/16 via 10.77.1.1";
  host.errors["add " + route] = ENETUNREACH;
  const Outcome outcome = undo(host);
  EXPECT_THAT(all_of(outcome.faults), HasSubstr("sudo " + route));
  EXPECT_EQ(host.state.nics.at(kNicA).driver, "virtio-pci");
  EXPECT_EQ(host.state.values.at(kPages0), "0");
  EXPECT_EQ(host.facts(Journal::kPath).kind, FileKind::kFile);
  host.errors.clear();
  const Outcome again = undo(host);
  EXPECT_TRUE(again.complete()) << all_of(again.faults);
  EXPECT_EQ(host.facts(Journal::kPath).kind, FileKind::kAbsent);
}

TEST(Grant, ANetworkManagerMayFlushWhatIsRestored) {
  FakeHost host = bare_machine();
  const FakeHost::State bare = host.state;
  ASSERT_TRUE(set_up(host).complete());
  host.flushes = 3;
  const Outcome undone = undo(host);
  EXPECT_EQ(host.flushes, 0U);
  EXPECT_TRUE(undone.complete()) << all_of(undone.faults);
  expect_same(host.state, bare);
}

TEST(Grant, OnlySettingsThatDifferAreSetAgain) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  const auto changes = static_cast<std::ptrdiff_t>(host.log.size());
  const Outcome undone = undo(host);
  EXPECT_THAT(undone.notes, IsEmpty()) << all_of(undone.notes);
  std::vector<std::string> set;
  std::copy_if(host.log.begin() + changes, host.log.end(), std::back_inserter(set),
               [](const std::string& one) { return one.starts_with("ethtool"); });
  EXPECT_THAT(set, testing::UnorderedElementsAre(
                       "ethtool -G ens1f0 rx 4096 tx 1024", "ethtool -K ens1f0 rx-gro-hw off",
                       "ethtool -G ens2f0 rx 4096 tx 1024", "ethtool -K ens2f0 rx-gro-hw off"));
}

TEST(Grant, ASettingThatTheDriverRefusesIsNotedAndTheOthersAreSet) {
  FakeHost host = bare_machine();
  FakeHost::State wanted = host.state;
  wanted.links.at("ens1f0").settings.at(1).values.at(0).second = 256;
  ASSERT_TRUE(set_up(host).complete());
  host.errors["ethtool -G ens1f0 rx 4096 tx 1024"] = EINVAL;
  host.errors["ethtool -G ens1f0 rx 4096"] = EINVAL;
  const Outcome undone = undo(host);
  EXPECT_TRUE(undone.complete()) << all_of(undone.faults);
  ASSERT_THAT(undone.notes, SizeIs(1));
  EXPECT_EQ(undone.notes.front().where, "ens1f0");
  EXPECT_EQ(undone.notes.front().what, "ring rx was 4096 and is 256 now: Invalid argument");
  EXPECT_EQ(undone.notes.front().mend, "sudo ethtool -G ens1f0 rx 4096");
  expect_same(host.state, wanted);
}

TEST(Grant, ADriverIsNotBelievedThatItTookASetting) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  host.stuck_settings = {"features rx-gro-hw"};
  const Outcome undone = undo(host);
  EXPECT_TRUE(undone.complete()) << all_of(undone.faults);
  EXPECT_THAT(all_of(undone.notes), HasSubstr("ens2f0: features rx-gro-hw was off and is on now: "
                                              "the driver did not take it"));
}

TEST(Grant, SettingsThatADriverNoLongerHasAreNoted) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  host.state.nics.at(kNicA).pristine.settings.clear();
  const Outcome undone = undo(host);
  EXPECT_TRUE(undone.complete()) << all_of(undone.faults);
  EXPECT_THAT(all_of(undone.notes),
              HasSubstr("ens1f0: channels combined was 8 and is not to be had now: "
                        "Operation not supported"));
}

TEST(Grant, AnEditedFileIsKept) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  host.add_file(kConfig, "schema = 1\n# mine\n");
  const Outcome outcome = undo(host);
  EXPECT_TRUE(outcome.complete());
  EXPECT_THAT(all_of(outcome.notes), HasSubstr("edited"));
  EXPECT_EQ(host.facts(kConfig).kind, FileKind::kAbsent);
  EXPECT_EQ(*host.read_file(std::string(kConfig) + ".edited"), "schema = 1\n# mine\n");

  ASSERT_TRUE(set_up(host).complete());
  host.add_file(kConfig, "schema = 1\n# mine, later\n");
  EXPECT_TRUE(undo(host).complete());
  EXPECT_EQ(*host.read_file(std::string(kConfig) + ".edited"), "schema = 1\n# mine\n");
  ASSERT_TRUE(host.read_file(std::string(kConfig) + ".edited-2"));
  EXPECT_EQ(*host.read_file(std::string(kConfig) + ".edited-2"), "schema = 1\n# mine, later\n");
}

TEST(Grant, InterfacesGetTheirNamesBackWithoutUdev) {
  FakeHost host = bare_machine();
  host.renames_interfaces = false;
  const FakeHost::State bare = host.state;
  ASSERT_TRUE(set_up(host).complete());
  const Outcome undone = undo(host);
  EXPECT_TRUE(undone.complete()) << all_of(undone.faults);
  expect_same(host.state, bare);
}

TEST(Grant, ANameThatAnotherInterfaceHasIsAFaultAndThatOneIsLeftAlone) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  host.renames_interfaces = false;
  LinkState stranger;
  stranger.name = "ens1f0";
  stranger.mac = stranger.permanent_mac = "52:54:00:00:00:99";
  host.state.links["ens1f0"] = stranger;
  host.errors["name eth0 ens1f0"] = EEXIST;
  host.errors["name eth1 ens1f0"] = EEXIST;
  const Outcome outcome = undo(host);
  EXPECT_THAT(all_of(outcome.faults), HasSubstr("its interface ens1f0 did not come back"));
  EXPECT_EQ(host.state.links.at("ens1f0"), stranger);
}

TEST(Grant, WhatIsNoLongerWishedIsGivenBack) {
  FakeHost host = bare_machine();
  const FakeHost::State bare = host.state;
  ASSERT_TRUE(set_up(host).complete());
  Wishes fewer = all_wishes();
  std::erase_if(fewer, [](const Wish& wish) { return key_of(wish).ends_with(kNicB); });
  ASSERT_TRUE(set_up(host, fewer).complete());
  EXPECT_EQ(host.state.nics.at(kNicA).driver, "vfio-pci");
  EXPECT_EQ(host.state.links.at("ens2f0"), bare.links.at("ens2f0"));
  ASSERT_TRUE(undo(host).complete());
  expect_same(host.state, bare);
}

TEST(Grant, MoreIsGrantedBesideWhatThereIs) {
  FakeHost host = bare_machine();
  const FakeHost::State bare = host.state;
  Wishes first = all_wishes();
  std::erase_if(first, [](const Wish& wish) { return key_of(wish).ends_with(kNicB); });
  ASSERT_TRUE(set_up(host, first).complete());
  Wishes more = nic_wishes(kNicB);
  more.push_back({"config", wish::File{kConfig, "schema = 1\n# two NICs\n", 0644, ""}});
  const auto changes = host.log.size();
  ASSERT_TRUE(set_up(host, more, Scope::kMore).complete());
  for (std::size_t i = changes; i < host.log.size(); ++i)
    EXPECT_THAT(host.log[i], Not(HasSubstr(kNicA)));
  EXPECT_EQ(host.state.nics.at(kNicB).driver, "vfio-pci");
  EXPECT_EQ(*host.read_file(kConfig), "schema = 1\n# two NICs\n");
  ASSERT_TRUE(undo(host).complete());
  expect_same(host.state, bare);
}

TEST(GrantAgain, ABootIsMadeUpFor) {
  FakeHost host = bare_machine();
  const FakeHost::State bare = host.state;
  ASSERT_TRUE(set_up(host).complete());
  const FakeHost::State whole = host.state;
  host.boot();
  auto journal = Journal::open(host);
  const Outcome again = grant_again(host, *journal, {});
  EXPECT_TRUE(again.complete()) << all_of(again.faults);
  expect_same(host.state, whole);
  const Outcome undone = undo(host);
  EXPECT_TRUE(undone.complete()) << all_of(undone.faults);
  expect_same(host.state, bare);
}

// Groups of a directory: the unit runs before the network.
TEST(GrantAgain, AGroupIsRememberedUntilTheNetworkKnowsIt) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  const FakeHost::State whole = host.state;
  host.boot();
  const auto groups = std::exchange(host.groups, {});
  auto journal = Journal::open(host);
  const Outcome early = grant_again(host, *journal, {});
  EXPECT_TRUE(early.complete()) << all_of(early.faults);
  expect_same(host.state, whole);
  host.groups = groups;
  EXPECT_TRUE(undo(host).complete());
}

TEST(GrantAgain, AFolderWithAFaultStaysForTheNextTry) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  host.boot();
  host.groups["ztcp"] = 991;
  host.errors["chown /usr/local/tfabric/tools/run"] = EROFS;
  auto journal = Journal::open(host);
  const Outcome again = grant_again(host, *journal, {});
  EXPECT_THAT(all_of(again.faults), HasSubstr("/usr/local/tfabric/tools/run: injected"));
  EXPECT_EQ(host.facts("/usr/local/tfabric/tools/run").kind, FileKind::kFolder);
  EXPECT_EQ(host.state.nodes.at("/dev/vfio/12").ownership.group, 991U);
}

TEST(GrantAgain, AnotherCardAtTheAddressIsLeftAlone) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  host.boot();
  host.state.nics.at(kNicA).id = "8086:1572";
  auto journal = Journal::open(host);
  const Outcome again = grant_again(host, *journal, {});
  EXPECT_THAT(all_of(again.faults), HasSubstr("is another device (8086:1572)"));
  EXPECT_EQ(host.state.nics.at(kNicA).driver, "virtio-pci");
  EXPECT_EQ(host.state.nics.at(kNicB).driver, "vfio-pci");
}

TEST(GrantAgain, EqualCardsThatChangedPlacesAreLeftAlone) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  std::swap(host.state.nics.at(kNicA).pristine, host.state.nics.at(kNicB).pristine);
  host.boot();
  const auto links = host.state.links;
  auto journal = Journal::open(host);
  const Outcome again = grant_again(host, *journal, {});
  EXPECT_THAT(all_of(again.faults), HasSubstr("is another NIC"));
  EXPECT_EQ(host.state.nics.at(kNicA).driver, "virtio-pci");
  // Neither name nor MAC nor addresses of the NIC that was there before.
  EXPECT_EQ(host.state.links, links);
}

// A disk image of a host that was set up, started on another machine of the same type: what undo
// knows is another machine's network.
TEST(Grant, UndoLeavesNicsAloneThatOnlyLookLikeThoseOfTheJournal) {
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

TEST(GrantAgain, AnInterruptedSetUpIsLeftToTheOperator) {
  FakeHost host = bare_machine();
  host.kill_at(40, FakeHost::When::kBefore);
  EXPECT_THROW(set_up(host), Killed);
  host.kill_at(0, FakeHost::When::kBefore);
  host.boot();
  const auto changes = host.changes;
  auto journal = Journal::open(host);
  const Outcome again = grant_again(host, *journal, {});
  EXPECT_THAT(all_of(again.faults), HasSubstr("cut off"));
  EXPECT_EQ(host.changes, changes);
}

TEST(Grant, LocksThatJobsLeftGoWithTheirFolder) {
  FakeHost host = bare_machine();
  const FakeHost::State bare = host.state;
  ASSERT_TRUE(set_up(host).complete());
  host.add_file("/usr/local/tfabric/tools/run/0000:3b:00.0.lock", "", {0666, 1000, 990});
  ASSERT_TRUE(undo(host).complete());
  expect_same(host.state, bare);
}

// --- What a dry run says of all this ------------------------------------------------------------

Plan plan_of(const Wishes& wishes) {
  Plan plan;
  plan.fabric.emplace();
  plan.wishes = wishes;
  return plan;
}

TEST(Foresee, WhatSetUpWouldRefuseIsTold) {
  FakeHost host = bare_machine();
  host.add_folder("/usr/local/tfabric", {0777, 0, 0});
  host.programs.erase("grubby");
  Plan plan = plan_of(all_wishes());
  foresee(host, Scope::kWhole, plan);
  config::Problems told;
  for (const config::Check& note : plan.notes) {
    EXPECT_EQ(note.severity, config::Severity::kFault);
    told.push_back(note.problem);
  }
  EXPECT_EQ(all_of(told), all_of(set_up(host).faults));
  EXPECT_THAT(all_of(told), HasSubstr("/usr/local/tfabric: may be written by others"));
  EXPECT_THAT(all_of(told), HasSubstr("there is no grubby"));
  EXPECT_EQ(host.changes, 0U);
}

TEST(Foresee, WhatIsGivenBackIsAChange) {
  FakeHost host = bare_machine();
  ASSERT_TRUE(set_up(host).complete());
  Plan same = plan_of(all_wishes());
  foresee(host, Scope::kWhole, same);
  EXPECT_THAT(same.changes, IsEmpty());
  EXPECT_THAT(same.notes, IsEmpty());
  Wishes fewer = all_wishes();
  std::erase_if(fewer, [](const Wish& wish) { return key_of(wish).ends_with(kNicB); });
  Plan plan = plan_of(fewer);
  const auto changes = host.changes;
  foresee(host, Scope::kWhole, plan);
  ASSERT_THAT(plan.changes, SizeIs(2));
  EXPECT_EQ(plan.changes[0].what, "given back: 0000:5e:00.0: for group ztcp");
  EXPECT_EQ(plan.changes[1].what, "given back: 0000:5e:00.0: virtio-pci -> vfio-pci");
  EXPECT_EQ(host.changes, changes);
}

TEST(Foresee, AnInterruptedRunIsTold) {
  FakeHost host = bare_machine();
  host.kill_at(40, FakeHost::When::kBefore);
  EXPECT_THROW(set_up(host), Killed);
  host.kill_at(0, FakeHost::When::kBefore);
  Plan plan = plan_of(all_wishes());
  foresee(host, Scope::kWhole, plan);
  ASSERT_THAT(plan.notes, SizeIs(1));
  EXPECT_THAT(plan.notes[0].problem.what, HasSubstr("cut off"));
}

}  // namespace
}  // namespace ztcp::setup
