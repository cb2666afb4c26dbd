// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// --dry-run on machines that came along as trees. The JSON of each is stored beside its tree;
// UPDATE_GOLDEN=1 writes it anew.
#include "tools/ztcp_setup/plan/plan.h"

#include <cstdlib>
#include <cstring>
#include <fstream>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/file/load.h"
#include "config/machine/readings.h"
#include "tests/support/tree.h"
#include "tests/unit/tools/setup/tree_host.h"
#include "tools/ztcp_setup/report/report.h"
#include "tools/ztcp_setup/run/preview.h"

namespace ztcp::setup {
namespace {

using test::TreeHost;
using testing::Contains;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

std::string tree_text(const std::string& name) {
  return ztcp::test::Tree::read(std::string(ZTCP_TREES) + "/" + name + ".tree");
}

Plan plan_for(const ztcp::test::Tree& tree, PlanRequest request = {},
              std::optional<config::Fabric> existing = std::nullopt) {
  TreeHost host(tree);
  PlanInput input{host, std::move(request), std::nullopt, "", ""};
  input.request.config_path = config::kDefaultPath;
  if (existing) input.existing_text = config::to_toml(*existing);
  input.existing = std::move(existing);
  return make_plan(input);
}

std::vector<Preview> changes_of(const ztcp::test::Tree& tree, const Plan& plan) {
  TreeHost host(tree);
  return preview_changes(host, {}, plan.resources);
}

PlanRequest without_iommu() {
  PlanRequest request;
  request.no_iommu = true;
  return request;
}

// What the machine is when all is applied, as far as a tree can be it.
void apply_to_tree(const Resources& resources, ztcp::test::Tree& tree) {
  TreeHost host(tree);
  for (const Resource& resource : resources) {
    if (const auto* file = std::get_if<resource::File>(&resource.what)) {
      tree.add_file(file->path.substr(1), file->text);
      std::filesystem::permissions(tree.root() + file->path,
                                   static_cast<std::filesystem::perms>(file->mode));
    } else if (const auto* folder = std::get_if<resource::Folder>(&resource.what)) {
      tree.add_folder(folder->path.substr(1));
      std::filesystem::permissions(tree.root() + folder->path,
                                   static_cast<std::filesystem::perms>(folder->mode));
    } else if (const auto* value = std::get_if<resource::Value>(&resource.what)) {
      tree.add_file(value->path.substr(1), value->value + "\n");
    } else if (const auto* module = std::get_if<resource::Module>(&resource.what)) {
      tree.add_folder("sys/bus/pci/drivers/" + module->name);
    } else if (const auto* mount = std::get_if<resource::Mount>(&resource.what)) {
      const std::string options = mount->path + " rw - hugetlbfs none rw," + mount->options;
      tree.add_file("proc/self/mountinfo", "40 22 0:35 / " + options + "\n");
      tree.add_file("proc/mounts", "none " + mount->path + " hugetlbfs rw,pagesize=1024M 0 0\n");
    } else if (const auto* driver = std::get_if<resource::Driver>(&resource.what)) {
      const std::string device =
          std::filesystem::canonical(tree.path("sys/bus/pci/devices/" + driver->pci)).string();
      for (const auto& net : config::interfaces_of(host, driver->pci))
        tree.remove("sys/class/net/" + net);
      for (const auto& child : host.list(config::pci_folder(driver->pci)))
        if (child == "net" || child.starts_with("virtio"))
          std::filesystem::remove_all(device + "/" + child);
      std::filesystem::remove(device + "/driver");
      std::ofstream(device + "/driver_override") << driver->driver << "\n";
      std::filesystem::create_symlink(tree.path("sys/bus/pci/drivers/") + driver->driver,
                                      device + "/driver");
    } else if (const auto* boot = std::get_if<resource::BootArguments>(&resource.what)) {
      std::string options = "options";
      for (const std::string& argument : boot->arguments) options += " " + argument;
      tree.add_file("boot/loader/entries/a.conf", options + "\n");
    } else if (const auto* unit = std::get_if<resource::Unit>(&resource.what)) {
      tree.add_link("etc/systemd/system/multi-user.target.wants/" + unit->name,
                    "/usr/lib/systemd/system/" + unit->name);
    }
  }
}

struct Case {
  const char* tree;
  const char* golden;
  PlanRequest request;
  bool again;  // After all was applied once.
};
class Golden : public testing::TestWithParam<Case> {};

TEST_P(Golden, DryRunSaysWhatIsStored) {
  ztcp::test::Tree tree(tree_text(GetParam().tree));
  Plan plan = plan_for(tree, GetParam().request);
  if (GetParam().again) {
    apply_to_tree(plan.resources, tree);
    plan = plan_for(tree, GetParam().request, plan.fabric);
  }
  const std::string json = to_json(plan, changes_of(tree, plan));
  const std::string path = std::string(ZTCP_TREES) + "/" + GetParam().golden + ".dry-run.json";
  if (std::getenv("UPDATE_GOLDEN") != nullptr) std::ofstream(path) << json;
  EXPECT_EQ(json, ztcp::test::Tree::read(path));
}

PlanRequest nics_without_gpus() {
  PlanRequest request = without_iommu();
  request.nics = PlanRequest::kAllNics;
  request.per_gpu_mib = 1024;
  request.spare_mib = 1024;
  return request;
}

PlanRequest for_a_group() {
  PlanRequest request = nics_without_gpus();
  request.no_iommu = false;
  request.group = "ztcp";
  return request;
}

// Every NIC of it has a default route of its own.
PlanRequest taken_by_name() {
  PlanRequest request = nics_without_gpus();
  request.selection.take = {"eth1", "0000:00:04.0"};
  return request;
}

INSTANTIATE_TEST_SUITE_P(
    Tree, Golden,
    testing::Values(Case{"server-8gpu-9nic", "server-8gpu-9nic", {}, false},
                    Case{"server-8gpu-9nic", "server-8gpu-9nic-again", {}, true},
                    Case{"cloud-flat", "cloud-flat", without_iommu(), false},
                    Case{"cloud-flat", "cloud-flat-refused", {}, false},
                    Case{"cloud-flat", "cloud-flat-again", without_iommu(), true},
                    Case{"vlan", "vlan", for_a_group(), false},
                    Case{"dhcp", "dhcp", taken_by_name(), false},
                    Case{"shared-group", "shared-group", nics_without_gpus(), false},
                    Case{"own-group", "own-group", {}, false}, Case{"no-gpu", "no-gpu", {}, false},
                    Case{"too-few-nics", "too-few-nics", {}, false}),
    [](const auto& row) {
      std::string name = row.param.golden;
      std::replace(name.begin(), name.end(), '-', '_');
      return name;
    });

TEST(Plan, EightGpusNeedFiftyGib) {
  const ztcp::test::Tree tree(tree_text("server-8gpu-9nic"));
  const Plan plan = plan_for(tree);
  ASSERT_TRUE(plan.fabric);
  EXPECT_EQ(plan.hugepage_mib(), 50U * 1024);
  ASSERT_EQ(plan.pages.size(), 2U);
  EXPECT_EQ(plan.pages[0].want, 25U);  // 4 x 5 GiB and half of the 10, in pages of 1 GiB.
  EXPECT_EQ(plan.pages[1].want, 25U);
  EXPECT_EQ(exit_code(plan), kExitGood);
}

std::vector<std::string> page_resources(const Plan& plan) {
  std::vector<std::string> wanted;
  for (const Resource& resource : plan.resources)
    if (const auto* value = std::get_if<resource::Value>(&resource.what);
        value != nullptr && value->at_least)
      wanted.push_back(value->value + " > " + value->path);
  return wanted;
}

// A process takes its memory for such a NIC on node 0, and a count of the whole machine would
// take in what other nodes have.
TEST(Plan, ANicThatKnowsNoNodeIsGivenPagesOfTheFirst) {
  std::string text = tree_text("server-8gpu-9nic");
  const auto at = text.find("numa=1", text.find("0000:9b:00.0 id="));
  text.replace(at, 6, "numa=-1");
  const Plan plan = plan_for(ztcp::test::Tree(text));
  EXPECT_THAT(
      page_resources(plan),
      testing::ElementsAre(
          "30 > /sys/devices/system/node/node0/hugepages/hugepages-1048576kB/nr_hugepages",
          "20 > /sys/devices/system/node/node1/hugepages/hugepages-1048576kB/nr_hugepages"));
  EXPECT_EQ(plan.hugepage_mib(), 50U * 1024);
}

TEST(Plan, PagesThatOtherProgramsHaveAreTold) {
  ztcp::test::Tree tree(tree_text("server-8gpu-9nic"));
  tree.add("pages node=1 kib=1048576 total=12 free=7");
  EXPECT_THAT(plan_for(tree).notes, IsEmpty()) << "20 of 25 stay free for 4 x 5 GiB";
  tree.add("pages node=1 kib=1048576 total=12 free=0");
  const Plan plan = plan_for(tree);
  ASSERT_EQ(plan.notes.size(), 1U);
  EXPECT_EQ(plan.notes[0].severity, config::Severity::kWarning);
  EXPECT_EQ(plan.notes[0].problem.where, "NUMA node 1");
  EXPECT_THAT(plan.notes[0].problem.what,
              HasSubstr("other programs have 12 of 1 GiB in use: of 25 pages 13 will be free, and "
                        "jobs may take 20"));
  EXPECT_THAT(plan.notes[0].problem.mend,
              HasSubstr("echo 37 | sudo tee /sys/devices/system/node/node1/hugepages/"));
  tree.add("pages node=1 kib=1048576 total=37 free=25");
  EXPECT_THAT(plan_for(tree).notes, IsEmpty());

  // Once set up, those in use may be a job's, and a second run changes nothing.
  tree.add("pages node=1 kib=1048576 total=12 free=0");
  apply_to_tree(plan.resources, tree);
  for (const char* node : {"node0", "node1"})
    tree.add_file(fmt::format("sys/devices/system/node/{}/hugepages/hugepages-1048576kB/"
                              "free_hugepages",
                              node),
                  "1\n");
  const Plan again = plan_for(tree, {}, plan.fabric);
  EXPECT_THAT(again.notes, IsEmpty());
  EXPECT_THAT(changes_of(tree, again), IsEmpty());
}

TEST(Plan, TheFabricIsAConfigThatLoads) {
  const ztcp::test::Tree tree(tree_text("server-8gpu-9nic"));
  const Plan plan = plan_for(tree);
  ASSERT_TRUE(plan.fabric);
  const auto loaded = config::parse(to_toml(*plan.fabric), plan.fabric->path);
  ASSERT_TRUE(loaded.fabric) << to_string(loaded.problems.front());
  EXPECT_EQ(*loaded.fabric, *plan.fabric);
  EXPECT_EQ(loaded.fabric->host.machine_id, "11111111111111111111111111111111");
  EXPECT_EQ(loaded.fabric->nics[3].kernel_driver, "bnxt_en");
}

std::vector<std::uint32_t> speeds_of(const Plan& plan) {
  std::vector<std::uint32_t> speeds;
  for (const config::Nic& nic : plan.fabric->nics) speeds.push_back(nic.speed_mbps);
  return speeds;
}

std::vector<config::Check> speed_notes(const Plan& plan) {
  std::vector<config::Check> notes;
  for (const config::Check& note : plan.notes)
    if (note.name == "speed") notes.push_back(note);
  return notes;
}

// virtio says nothing of its speed.
TEST(Plan, ASpeedThatNobodyTellsIsAskedFor) {
  ztcp::test::Tree tree(tree_text("cloud-flat"));
  PlanRequest request = without_iommu();
  const Plan plan = plan_for(tree, request);
  EXPECT_THAT(speeds_of(plan), testing::Each(0U));
  ASSERT_EQ(speed_notes(plan).size(), 1U);
  const config::Check note = speed_notes(plan).front();
  EXPECT_EQ(note.severity, config::Severity::kWarning);
  EXPECT_THAT(note.problem.where, HasSubstr("ztcp0, ztcp1, "));
  EXPECT_THAT(note.problem.what, HasSubstr("the speed is unknown, so NCCL is told 10000 Mb/s"));
  EXPECT_THAT(note.problem.mend, HasSubstr("ztcp_setup --speed MBPS"));

  request.speed_mbps = 25000;
  request.speeds_mbps = {{"eth2", 50000}, {"0000:00:12.0", 40000}};
  const Plan stated = plan_for(tree, request);
  const auto speed_of = [&](std::string_view pci) {
    for (const config::Nic& nic : stated.fabric->nics)
      if (nic.pci == pci) return nic.speed_mbps;
    return 0U;
  };
  EXPECT_EQ(speed_of("0000:00:10.0"), 25000U);
  EXPECT_EQ(speed_of("0000:00:11.0"), 50000U);
  EXPECT_EQ(speed_of("0000:00:12.0"), 40000U);
  EXPECT_THAT(speed_notes(stated), IsEmpty());
  // Once stated it stands in the config, also where the NIC is a kernel driver's again.
  EXPECT_THAT(speeds_of(plan_for(tree, without_iommu(), stated.fabric)), speeds_of(stated));

  request.speeds_mbps = {{"eth77", 50000}};
  const Plan wrong = plan_for(tree, request);
  ASSERT_EQ(speed_notes(wrong).size(), 1U);
  EXPECT_EQ(speed_notes(wrong)[0].severity, config::Severity::kFault);
  EXPECT_THAT(speed_notes(wrong)[0].problem.where, HasSubstr("eth77"));
}

TEST(Plan, AnInstanceTypeTellsTheSpeedOfItsNics) {
  ztcp::test::Tree tree(tree_text("cloud-flat"));
  tree.add_file("sys/class/dmi/id/sys_vendor", "Amazon EC2\n");
  tree.add_file("sys/class/dmi/id/product_name", "p4d.24xlarge\n");
  const Plan plan = plan_for(tree, without_iommu());
  EXPECT_THAT(speeds_of(plan), testing::Each(50000U)) << "400 Gb/s for eight NICs";
  EXPECT_THAT(speed_notes(plan), IsEmpty());
  EXPECT_THAT(to_text(plan, {}), HasSubstr("Speed: p4d.24xlarge has 400000 Mb/s for all NICs"));
  tree.add_file("sys/class/dmi/id/product_name", "p5.48xlarge\n");
  EXPECT_THAT(speeds_of(plan_for(tree, without_iommu())), testing::Each(100000U))
      << "the most that a network card carries";
  tree.add_file("sys/class/dmi/id/product_name", "m5.large\n");
  EXPECT_THAT(speeds_of(plan_for(tree, without_iommu())), testing::Each(0U));
}

TEST(Plan, HostClassFollowsTheIommu) {
  const ztcp::test::Tree server(tree_text("server-8gpu-9nic"));
  EXPECT_EQ(plan_for(server).fabric->host.host_class, config::HostClass::kIommu);
  const ztcp::test::Tree cloud(tree_text("cloud-flat"));
  const Plan plan = plan_for(cloud, without_iommu());
  EXPECT_EQ(plan.fabric->host.host_class, config::HostClass::kNoIommu);
  EXPECT_THAT(changes_of(cloud, plan),
              Contains(Field(&Preview::command,
                             "echo Y > /sys/module/vfio/parameters/enable_unsafe_noiommu_mode")));
  EXPECT_THAT(to_text(plan, {}), HasSubstr("Host class B: no IOMMU"));
}

TEST(Plan, TheDefaultRouteStaysUntouched) {
  const ztcp::test::Tree tree(tree_text("cloud-flat"));
  const Plan plan = plan_for(tree, without_iommu());
  const auto changes = changes_of(tree, plan);
  EXPECT_FALSE(changes.empty());
  for (const Preview& change : changes) {
    EXPECT_THAT(change.command, Not(HasSubstr("eth0")));
    EXPECT_THAT(change.command, Not(HasSubstr("0000:00:05.0")));
  }
  EXPECT_THAT(to_text(plan, {}),
              HasSubstr("0000:00:05.0 eth0 is left alone: it carries the default "
                        "route"));
}

config::Check only_fault(const Plan& plan) {
  std::vector<config::Check> faults;
  for (const config::Check& note : plan.notes)
    if (note.severity == config::Severity::kFault) faults.push_back(note);
  EXPECT_EQ(faults.size(), 1U);
  if (faults.size() != 1) return {};
  EXPECT_TRUE(plan.has_faults());
  EXPECT_FALSE(faults[0].problem.mend.empty());
  return faults[0];
}

TEST(Plan, ANicWithoutAddressIsAFault) {
  std::string text = tree_text("cloud-flat");
  text.erase(text.find("address if=eth3"), std::strlen("address if=eth3 ip=10.77.3.5/24\n"));
  const ztcp::test::Tree tree(text);
  const Plan plan = plan_for(tree, without_iommu());
  EXPECT_EQ(only_fault(plan).problem.where, "eth3");
  EXPECT_EQ(exit_code(plan), kExitFaults);
}

// A disk image of a host that was set up, on another machine: its config holds addresses of that
// host.
TEST(Plan, ANicWithoutAddressDoesNotInheritAnotherHosts) {
  std::string text = tree_text("cloud-flat");
  Plan other = plan_for(ztcp::test::Tree(text), without_iommu());
  for (config::Nic& nic : other.fabric->nics) nic.mac.bytes[5] ^= 0xff;
  text.erase(text.find("address if=eth3"), std::strlen("address if=eth3 ip=10.77.3.5/24\n"));
  const ztcp::test::Tree tree(text);
  EXPECT_EQ(only_fault(plan_for(tree, {}, other.fabric)).problem.where, "eth3");
}

TEST(Plan, ALinkLocalAddressIsTheLastChoice) {
  std::string text = tree_text("cloud-flat");
  text.insert(text.find("address if=eth3"), "address if=eth3 ip=169.254.7.7/16\n");
  const Plan plan = plan_for(ztcp::test::Tree(text), without_iommu());
  ASSERT_TRUE(plan.fabric);
  for (std::size_t i = 0; i < plan.pairs.size(); ++i) {
    const config::HostNic& nic = plan.topology.nics[plan.pairs[i].nic];
    if (nic.interface != "eth3") continue;
    EXPECT_EQ(to_string(plan.fabric->nics[i].address), "10.77.3.5/24");
    EXPECT_THAT(nic.left_out, testing::ElementsAre("169.254.7.7/16 on eth3"));
  }
}

// After set-up the kernel knows nothing of the NICs: the config remembers.
TEST(Plan, ASecondRunFindsNothingToChange) {
  for (const char* name : {"server-8gpu-9nic", "cloud-flat"}) {
    ztcp::test::Tree tree(tree_text(name));
    const Plan first = plan_for(tree, without_iommu());
    ASSERT_TRUE(first.fabric);
    apply_to_tree(first.resources, tree);
    const Plan second = plan_for(tree, {}, first.fabric);
    ASSERT_TRUE(second.fabric) << name;
    EXPECT_EQ(*second.fabric, *first.fabric);
    const auto changes = changes_of(tree, second);
    EXPECT_THAT(changes, IsEmpty()) << changes.front().what;
  }
}

// --- What is asked for by name -------------------------------------------------------------------

TEST(Plan, WithoutAnIommuNothingGoesUnlessAsked) {
  ztcp::test::Tree tree(tree_text("cloud-flat"));
  config::Check fault = only_fault(plan_for(tree));
  EXPECT_THAT(fault.problem.what, HasSubstr("no IOMMU group for eth5"));
  EXPECT_THAT(fault.problem.what, HasSubstr("the firmware describes none"));
  EXPECT_THAT(fault.problem.mend, HasSubstr("ztcp_setup --no-iommu"));
  tree.add_file("proc/cpuinfo", "processor\t: 0\nvendor_id\t: AuthenticAMD\nflags\t: fpu\n");
  EXPECT_THAT(only_fault(plan_for(tree)).problem.mend, HasSubstr("AMD-Vi"));
  tree.add_file("proc/cpuinfo", "processor\t: 0\nflags\t: fpu hypervisor\n");
  EXPECT_THAT(only_fault(plan_for(tree)).problem.what, HasSubstr("virtual machine was given none"));
  tree.add_file("sys/firmware/acpi/tables/DMAR", "");
  EXPECT_THAT(only_fault(plan_for(tree)).problem.mend, HasSubstr("ztcp_setup --iommu"));
}

TEST(Plan, AskingForAnIommuTouchesOnlyTheNextBoot) {
  ztcp::test::Tree tree(tree_text("cloud-flat"));
  tree.add_file("proc/cpuinfo", "processor\t: 0\nvendor_id\t: GenuineIntel\n");
  PlanRequest request;
  request.ask_iommu = true;
  const Plan plan = plan_for(tree, request);
  EXPECT_FALSE(plan.has_faults());
  EXPECT_TRUE(plan.awaits_reboot);
  EXPECT_EQ(exit_code(plan), kExitWarnings);
  ASSERT_EQ(plan.resources.size(), 3U);
  EXPECT_THAT(std::get<resource::File>(plan.resources[0].what).text,
              HasSubstr(" intel_iommu=on iommu=pt hugepagesz=2M"));
}

TEST(Plan, AnIommuThatIsThereIsUsed) {
  const ztcp::test::Tree tree(tree_text("server-8gpu-9nic"));
  const Plan plan = plan_for(tree, without_iommu());
  EXPECT_EQ(plan.fabric->host.host_class, config::HostClass::kIommu);
  ASSERT_EQ(plan.notes.size(), 1U);
  EXPECT_THAT(plan.notes[0].problem.what, HasSubstr("not needed"));
}

// All that is wrong at once: nothing is found out only after something else is mended.
TEST(Plan, EveryFaultOfTheRequestIsTold) {
  const ztcp::test::Tree tree(tree_text("cloud-flat"));
  PlanRequest request;
  request.selection.keep = {"eth99"};
  request.selection.take = {"0000:ff:00.0"};
  request.user = "nobody-here";
  request.group = "no-such";
  request.page_kib = 1048576;
  request.per_gpu_mib = 200 * 1024;
  request.speed_mbps = 25000;
  const Plan plan = plan_for(tree, request);
  std::vector<std::string> where;
  for (const config::Check& note : plan.notes) {
    EXPECT_EQ(note.severity, config::Severity::kFault) << note.problem.what;
    EXPECT_FALSE(note.problem.mend.empty());
    where.push_back(note.problem.where);
  }
  EXPECT_THAT(where, testing::ElementsAre("--keep eth99", "--take 0000:ff:00.0",
                                          "--user nobody-here", "--group no-such", "IOMMU",
                                          "hugepages", "NUMA node 0", "NUMA node 1"));
}

TEST(Plan, AGroupThatLimitsCanNotNameIsAFault) {
  ztcp::test::Tree tree(tree_text("server-8gpu-9nic"));
  tree.add_file("etc/group", "domain users:x:513:\n");
  PlanRequest request;
  request.group = "domain users";
  EXPECT_THAT(only_fault(plan_for(tree, request)).problem.what, HasSubstr("has a blank"));
}

TEST(Plan, AUserAndAGroupGetWhatJobsNeed) {
  ztcp::test::Tree tree(tree_text("server-8gpu-9nic"));
  tree.add(
      "file path=etc/passwd text=alice:x:1000:1000::/:/bin/sh\n"
      "file path=etc/group text=ztcp:x:990:alice\n"
      "file path=usr/lib/systemd/system/docker.service text=[Service]");
  PlanRequest request;
  request.user = "alice";
  request.group = "ztcp";
  const Plan plan = plan_for(tree, request);
  EXPECT_EQ(plan.fabric->host.user, "alice");
  std::size_t groups = 0;
  std::vector<std::string> files;
  for (const Resource& resource : plan.resources) {
    if (const auto* access = std::get_if<resource::Access>(&resource.what)) {
      ++groups;
      EXPECT_EQ(access->user, "alice");
      EXPECT_EQ(access->group, "ztcp");
      EXPECT_EQ(access->mode, 0660U);
    } else if (const auto* folder = std::get_if<resource::Folder>(&resource.what)) {
      EXPECT_EQ(folder->mode, 02770U);
      EXPECT_EQ(folder->group, "ztcp");
    } else if (const auto* file = std::get_if<resource::File>(&resource.what)) {
      files.push_back(file->path);
      if (file->path == "/etc/security/limits.d/ztcp.conf") {
        EXPECT_THAT(file->text, HasSubstr("\nalice - memlock unlimited\n@ztcp - memlock"));
      }
    }
  }
  EXPECT_EQ(groups, 8U);
  EXPECT_THAT(files, Contains("/etc/systemd/system/docker.service.d/50-ztcp.conf"));
  // Who was let in once stays in.
  EXPECT_EQ(plan_for(tree, {}, plan.fabric).fabric->host.group, "ztcp");
}

// --- The config as the memory of a host ----------------------------------------------------------

TEST(Plan, AddingKeepsWhatTheConfigSays) {
  ztcp::test::Tree tree(tree_text("server-8gpu-9nic"));
  Plan first = plan_for(tree);
  first.fabric->nics[2].mtu_bytes = 4000;
  first.fabric->poller.spin_us = 7;
  // The kernel's drivers have the NICs, DHCP has not run, a cloud's route is there already.
  const ztcp::test::Tree booted(
      tree_text("server-8gpu-9nic").substr(0, tree_text("server-8gpu-9nic").find("address if=")) +
      "route if=ens1f0 via=10.77.1.1 metric=900");
  PlanRequest request;
  request.mode = Mode::kAdd;
  const Plan plan = plan_for(booted, request, first.fabric);
  EXPECT_FALSE(plan.has_faults());
  EXPECT_EQ(*plan.fabric, *first.fabric);
  EXPECT_EQ(plan.resources.size(), first.resources.size());
}

TEST(Plan, AddingWithoutAMissingNicKeepsTheOthers) {
  ztcp::test::Tree tree(tree_text("server-8gpu-9nic"));
  const Plan first = plan_for(tree);
  std::string text = tree_text("server-8gpu-9nic");
  for (const char* verb : {"\npci path=", "\nnet path="}) {
    const auto at = text.find("/0000:1b:00.0", text.find(verb));
    const auto begin = text.rfind('\n', at);
    text.erase(begin, text.find('\n', at) - begin);
  }
  PlanRequest request;
  request.mode = Mode::kAdd;
  const Plan plan = plan_for(ztcp::test::Tree(text), request, first.fabric);
  EXPECT_FALSE(plan.has_faults());
  EXPECT_EQ(plan.fabric->nics.size(), 7U);
  ASSERT_EQ(plan.notes.size(), 1U);
  EXPECT_EQ(plan.notes[0].problem.where, "ztcp0");
}

TEST(Plan, AnotherNicInItsPlaceIsAFault) {
  const ztcp::test::Tree tree(tree_text("server-8gpu-9nic"));
  Plan first = plan_for(tree);
  first.fabric->nics[0].mac.bytes[5] ^= 0xff;
  PlanRequest request;
  request.mode = Mode::kAdd;
  EXPECT_THAT(only_fault(plan_for(tree, request, first.fabric)).problem.what,
              HasSubstr("another NIC took its place"));
}

TEST(Plan, ANicThatCameSinceIsAdded) {
  ztcp::test::Tree tree(tree_text("vlan"));
  PlanRequest request;
  request.nics = 1;
  request.per_gpu_mib = 1024;
  request.spare_mib = 0;
  Plan first = plan_for(tree, request);
  ASSERT_EQ(first.fabric->nics.size(), 1U);
  apply_to_tree(first.resources, tree);
  request.nics.reset();
  request.mode = Mode::kAdd;
  const Plan plan = plan_for(tree, request, first.fabric);
  ASSERT_EQ(plan.fabric->nics.size(), 2U);
  EXPECT_EQ(plan.fabric->nics[0], first.fabric->nics[0]);
  EXPECT_EQ(plan.fabric->nics[1].name, "ztcp1");
  EXPECT_EQ(plan.fabric->nics[1].pci, "0000:00:04.0");
  // And once more: nothing came.
  apply_to_tree(plan.resources, tree);
  EXPECT_THAT(changes_of(tree, plan_for(tree, request, plan.fabric)), IsEmpty());
}

TEST(Plan, SettingsOfTheOperatorSurvive) {
  ztcp::test::Tree tree(tree_text("server-8gpu-9nic"));
  const Plan first = plan_for(tree);
  apply_to_tree(first.resources, tree);
  config::Fabric edited = *first.fabric;
  edited.name = "blue";
  edited.tcp.pacing = false;
  EXPECT_EQ(*plan_for(tree, {}, edited).fabric, edited);
}

TEST(Plan, AFabricOfSoftwareNicsIsLeftAlone) {
  const ztcp::test::Tree tree(tree_text("server-8gpu-9nic"));
  config::Fabric local;
  local.nics.emplace_back();
  EXPECT_THAT(only_fault(plan_for(tree, {}, local)).problem.what,
              HasSubstr("is a fabric of software NICs"));
}

// A NIC that shares its group with another of ours can be driven by no second process.
TEST(Plan, TwoNicsOfOneGroupAreRefusedForGpusAndForAnyProcess) {
  const ztcp::test::Tree tree(tree_text("own-group"));
  for (const PlanRequest& request : {PlanRequest{}, nics_without_gpus()}) {
    const config::Check fault = only_fault(plan_for(tree, request));
    EXPECT_EQ(fault.name, "group");
    EXPECT_EQ(fault.problem.where, "eth1, eth2");
    EXPECT_THAT(fault.problem.what, HasSubstr("share IOMMU group 17"));
  }
  PlanRequest one = nics_without_gpus();
  one.nics = 1;
  EXPECT_THAT(only_fault(plan_for(tree, one)).problem.what, HasSubstr("0000:02:00.1 (i40e)"))
      << "and one alone can't have the group";
}

TEST(Plan, AVlanIsItsTagItsAddressAndItsMtu) {
  const ztcp::test::Tree tree(tree_text("vlan"));
  const Plan plan = plan_for(tree, for_a_group());
  ASSERT_EQ(plan.fabric->nics.size(), 2U);
  const config::Nic& nic = plan.fabric->nics[0];
  EXPECT_EQ(nic.vlan_id, 100);
  EXPECT_EQ(to_string(nic.address), "10.5.1.2/24");
  EXPECT_EQ(nic.mtu_bytes, 8996);
  EXPECT_EQ(to_string(*nic.gateway), "10.5.1.1");
}

TEST(Plan, TextListsGpusNicsAndReasons) {
  const ztcp::test::Tree tree(tree_text("server-8gpu-9nic"));
  const std::string text = to_text(plan_for(tree), changes_of(tree, plan_for(tree)));
  EXPECT_THAT(text, HasSubstr("ztcp0   0000:19:00.0  NVIDIA H800"));
  EXPECT_THAT(text, HasSubstr("Hugepages: 50 GiB = 8 GPUs x 5 GiB + 10 GiB"));
  EXPECT_THAT(text, HasSubstr("0000:1b:00.0 (ztcp0): bnxt_en -> vfio-pci\n"));
  EXPECT_THAT(text, HasSubstr("nothing was changed"));
  EXPECT_THAT(text, HasSubstr("        + GRUB_CMDLINE_LINUX=")) << "what a file will hold";
  EXPECT_THAT(text, Not(HasSubstr("        + #"))) << "but for comments";
}

class WithoutNetwork final : public LiveHost {
 public:
  using LiveHost::LiveHost;
  tl::expected<config::Network, config::Problem> network() override {
    return tl::unexpected(
        config::Problem{"rtnetlink", "Operation not permitted", "run it as root"});
  }
};

// Which NIC carries the machine's own traffic can't be told then, so that none is taken.
TEST(Plan, ANetworkThatCantBeReadLeavesNoPlan) {
  const ztcp::test::Tree tree(tree_text("server-8gpu-9nic"));
  WithoutNetwork host(tree.root());
  Plan plan = make_plan({host, {}, std::nullopt, "", ""});
  EXPECT_FALSE(plan.fabric);
  EXPECT_THAT(plan.resources, IsEmpty());
  EXPECT_THAT(preview_run(host, Scope::kWhole, plan), IsEmpty());
  EXPECT_EQ(only_fault(plan).problem.where, "rtnetlink");
  EXPECT_EQ(exit_code(plan), kExitUnusable);
  const std::string told =
      "  FAULT: rtnetlink: Operation not permitted\n    mend: run it as root\n";
  EXPECT_EQ(to_text(plan, {}), told);
  EXPECT_EQ(faults_text(plan, false), told);
  EXPECT_THAT(to_json(plan, {}, "set-up"), HasSubstr("\"exit_code\": 3"));
}

TEST(Plan, WithoutAPairingTextShowsWhatThereIs) {
  const ztcp::test::Tree tree(tree_text("too-few-nics"));
  const Plan plan = plan_for(tree, {});
  EXPECT_EQ(exit_code(plan), kExitUnusable);
  const std::string text = to_text(plan, {});
  EXPECT_THAT(text, HasSubstr("not for ztcp: carries the default route"));
  EXPECT_THAT(text, HasSubstr("FAULT: this machine: 4 GPUs need 4 NICs"));
}

}  // namespace
}  // namespace ztcp::setup
