// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What is decided about machines that came along as trees: which NICs, of what class, as what.
#include "tools/ztcp_setup/plan/plan.h"

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/file/load.h"
#include "tests/unit/tools/ztcp_setup/bare_machine.h"
#include "tests/unit/tools/ztcp_setup/tree_plan.h"
#include "tools/ztcp_setup/local/local.h"
#include "tools/ztcp_setup/report/report.h"

namespace ztcp::setup {
namespace {

using test::dry_run_of;
using test::FakeHost;
using test::nics_without_gpus;
using test::only_fault;
using test::plan_of;
using test::set_up;
using test::tree_text;
using test::without_iommu;
using test::write_config;
using testing::Contains;
using testing::Field;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

TEST(Plan, TheFabricIsAConfigThatLoads) {
  FakeHost host(tree_text("server-8gpu-9nic"));
  const Plan plan = plan_of(host);
  ASSERT_TRUE(plan.fabric);
  const auto loaded = config::parse(to_toml(*plan.fabric), plan.fabric->path);
  ASSERT_TRUE(loaded.fabric) << to_string(loaded.problems.front());
  EXPECT_EQ(*loaded.fabric, *plan.fabric);
  EXPECT_EQ(loaded.fabric->host.machine_id, "11111111111111111111111111111111");
  EXPECT_EQ(loaded.fabric->nics[3].kernel_driver, "bnxt_en");
}

TEST(Plan, AConfigIsAFile) {
  FakeHost host(tree_text("server-8gpu-9nic"));
  PlanRequest request;
  request.config_path = "/srv/ztcp/";
  const auto run = dry_run_here(host, request);
  ASSERT_TRUE(run) << to_string(run.error());
  const config::Check fault = only_fault(run->plan);
  EXPECT_EQ(fault.problem.where, "/srv/ztcp/");
  EXPECT_EQ(fault.problem.mend, "ztcp_setup --config /srv/ztcp/ztcp.conf");
}

TEST(Plan, HostClassFollowsTheIommu) {
  FakeHost server(tree_text("server-8gpu-9nic"));
  EXPECT_EQ(plan_of(server).fabric->host.host_class, config::HostClass::kIommu);
  FakeHost cloud(tree_text("cloud-flat"));
  const DryRun run = dry_run_of(cloud, without_iommu());
  EXPECT_EQ(run.plan.fabric->host.host_class, config::HostClass::kNoIommu);
  EXPECT_THAT(run.changes,
              Contains(Field(&Preview::command,
                             "echo Y > /sys/module/vfio/parameters/enable_unsafe_noiommu_mode")));
  EXPECT_THAT(to_text(run.plan, {}), HasSubstr("Host class B: no IOMMU"));
}

TEST(Plan, TheDefaultRouteStaysUntouched) {
  FakeHost host(tree_text("cloud-flat"));
  const DryRun run = dry_run_of(host, without_iommu());
  EXPECT_FALSE(run.changes.empty());
  for (const Preview& change : run.changes) {
    EXPECT_THAT(change.command, Not(HasSubstr("eth0")));
    EXPECT_THAT(change.command, Not(HasSubstr("0000:00:05.0")));
  }
  EXPECT_THAT(to_text(run.plan, {}),
              HasSubstr("0000:00:05.0 eth0 is left alone: it carries the default "
                        "route"));
}

TEST(Plan, ANicWithoutAddressIsAFault) {
  std::string text = tree_text("cloud-flat");
  text.erase(text.find("address if=eth3"), std::strlen("address if=eth3 ip=10.77.3.5/24\n"));
  FakeHost host(text);
  const Plan plan = plan_of(host, without_iommu());
  EXPECT_EQ(only_fault(plan).problem.where, "eth3");
  EXPECT_EQ(exit_code(plan), kExitFaults);
}

// A disk image of a host that was set up, on another machine: its config holds addresses of that
// host.
TEST(Plan, ANicWithoutAddressDoesNotInheritAnotherHosts) {
  std::string text = tree_text("cloud-flat");
  FakeHost imaged(text);
  Plan other = plan_of(imaged, without_iommu());
  for (config::Nic& nic : other.fabric->nics) nic.mac.bytes[5] ^= 0xff;
  text.erase(text.find("address if=eth3"), std::strlen("address if=eth3 ip=10.77.3.5/24\n"));
  FakeHost host(text);
  write_config(host, *other.fabric);
  EXPECT_EQ(only_fault(plan_of(host)).problem.where, "eth3");
}

TEST(Plan, ALinkLocalAddressIsTheLastChoice) {
  std::string text = tree_text("cloud-flat");
  text.insert(text.find("address if=eth3"), "address if=eth3 ip=169.254.7.7/16\n");
  FakeHost host(text);
  const Plan plan = plan_of(host, without_iommu());
  ASSERT_TRUE(plan.fabric);
  for (std::size_t i = 0; i < plan.pairs.size(); ++i) {
    const config::HostNic& nic = plan.topology.nics[plan.pairs[i].nic];
    if (nic.interface != "eth3") continue;
    EXPECT_EQ(to_string(plan.fabric->nics[i].address), "10.77.3.5/24");
    EXPECT_THAT(nic.left_out, testing::ElementsAre("169.254.7.7/16 on eth3"));
  }
}

TEST(Plan, AVlanIsItsTagItsAddressAndItsMtu) {
  FakeHost host(tree_text("vlan"));
  const Plan plan = plan_of(host, test::for_a_group());
  ASSERT_EQ(plan.fabric->nics.size(), 2U);
  const config::Nic& nic = plan.fabric->nics[0];
  EXPECT_EQ(nic.vlan_id, 100);
  EXPECT_EQ(to_string(nic.address), "10.5.1.2/24");
  EXPECT_EQ(nic.mtu_bytes, 8996);
  EXPECT_EQ(to_string(*nic.gateway), "10.5.1.1");
}

// --- What is asked for by name -------------------------------------------------------------------

TEST(Plan, WithoutAnIommuNothingGoesUnlessAsked) {
  FakeHost host(tree_text("cloud-flat"));
  std::string& cpu = host.state.values["/proc/cpuinfo"];
  const config::Check fault = only_fault(plan_of(host));
  EXPECT_THAT(fault.problem.what, HasSubstr("no IOMMU group for eth5"));
  EXPECT_THAT(fault.problem.what, HasSubstr("the firmware describes none"));
  EXPECT_THAT(fault.problem.mend, HasSubstr("ztcp_setup --no-iommu"));
  cpu = "processor\t: 0\nvendor_id\t: AuthenticAMD\nflags\t: fpu";
  EXPECT_THAT(only_fault(plan_of(host)).problem.mend, HasSubstr("AMD-Vi"));
  cpu = "processor\t: 0\nflags\t: fpu hypervisor";
  EXPECT_THAT(only_fault(plan_of(host)).problem.what, HasSubstr("virtual machine was given none"));
  host.state.values["/sys/firmware/acpi/tables/DMAR"] = "";
  EXPECT_THAT(only_fault(plan_of(host)).problem.mend, HasSubstr("ztcp_setup --iommu"));
}

TEST(Plan, AskingForAnIommuTouchesOnlyTheNextBoot) {
  FakeHost host(tree_text("cloud-flat"));
  host.state.values["/proc/cpuinfo"] = "processor\t: 0\nvendor_id\t: GenuineIntel";
  PlanRequest request;
  request.ask_iommu = true;
  const Plan plan = plan_of(host, request);
  EXPECT_FALSE(plan.has_faults());
  EXPECT_TRUE(plan.awaits_reboot);
  EXPECT_EQ(exit_code(plan), kExitWarnings);
  ASSERT_EQ(plan.resources.size(), 3U);
  EXPECT_THAT(std::get<resource::File>(plan.resources[0].what).text,
              HasSubstr(" intel_iommu=on iommu=pt hugepagesz=2M"));
}

TEST(Plan, AnIommuThatIsThereIsUsed) {
  FakeHost host(tree_text("server-8gpu-9nic"));
  const Plan plan = plan_of(host, without_iommu());
  EXPECT_EQ(plan.fabric->host.host_class, config::HostClass::kIommu);
  ASSERT_EQ(plan.notes.size(), 1U);
  EXPECT_THAT(plan.notes[0].problem.what, HasSubstr("not needed"));
}

// All that is wrong at once: nothing is found out only after something else is mended.
TEST(Plan, EveryFaultOfTheRequestIsTold) {
  FakeHost host(tree_text("cloud-flat"));
  PlanRequest request;
  request.selection.keep = {"eth99"};
  request.selection.take = {"0000:ff:00.0"};
  request.user = "nobody-here";
  request.group = "no-such";
  request.page_kib = 1048576;
  request.per_gpu_mib = 200 * 1024;
  request.speed_mbps = 25000;
  const Plan plan = plan_of(host, request);
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

TEST(Plan, AnOddNameIsOneWordOfItsMend) {
  FakeHost host(tree_text("cloud-flat"));
  PlanRequest request = test::without_iommu();
  request.group = "domain users";
  EXPECT_EQ(only_fault(plan_of(host, request)).problem.mend,
            "sudo groupadd --system 'domain users'");
}

TEST(Plan, AConfigThatThePluginWouldRefuseIsAFault) {
  FakeHost host(tree_text("cloud-flat"));
  PlanRequest request = without_iommu();
  request.per_gpu_mib = 32;
  EXPECT_THAT(only_fault(plan_of(host, request)).problem.what,
              HasSubstr("per_process_mib = 32 is outside 64..65536"));
}

TEST(Plan, AsManyQueuesAsTheNicsHave) {
  FakeHost host(tree_text("cloud-flat"));
  PlanRequest request = without_iommu();
  EXPECT_EQ(plan_of(host, request).fabric->nics[0].queues, 1U);
  request.queues = 4;
  host.offered_queues = {{"eth5", 4}, {"eth6", 8}};  // The others don't tell.
  const Plan four = plan_of(host, request);
  EXPECT_FALSE(four.has_faults());
  EXPECT_EQ(four.fabric->nics[7].queues, 4U);
  EXPECT_THAT(to_text(four, {}), HasSubstr("Queues of a NIC: 4, each with a poller"));
  host.offered_queues["eth5"] = 2;
  const config::Problem problem = only_fault(plan_of(host, request)).problem;
  EXPECT_EQ(problem.where, "eth5");
  EXPECT_EQ(problem.what, "4 queues wanted, its driver virtio-pci has 2 at most");
  EXPECT_EQ(problem.mend, "ztcp_setup --queues 2, or --queues auto");
  request.queues = config::kAutoQueues;
  const Plan automatic = plan_of(host, request);
  EXPECT_THAT(to_toml(*automatic.fabric), HasSubstr("queues = \"auto\""));
  // Once asked for they stand in the config.
  ASSERT_TRUE(set_up(host, four.resources).complete());
  EXPECT_EQ(plan_of(host, without_iommu()).fabric->nics[3].queues, 4U);
}

// A NIC that shares its group with another of ours can be driven by no second process.
TEST(Plan, TwoNicsOfOneGroupAreRefusedForGpusAndForAnyProcess) {
  FakeHost host(tree_text("own-group"));
  for (const PlanRequest& request : {PlanRequest{}, nics_without_gpus()}) {
    const config::Check fault = only_fault(plan_of(host, request));
    EXPECT_EQ(fault.name, "group");
    EXPECT_EQ(fault.problem.where, "eth1, eth2");
    EXPECT_THAT(fault.problem.what, HasSubstr("share IOMMU group 17"));
  }
  PlanRequest one = nics_without_gpus();
  one.nics = 1;
  EXPECT_THAT(only_fault(plan_of(host, one)).problem.what, HasSubstr("0000:02:00.1 (i40e)"))
      << "and one alone can't have the group";
}

// --- The config as the memory of a host ----------------------------------------------------------

PlanRequest adding() {
  PlanRequest request;
  request.mode = Mode::kAdd;
  return request;
}

TEST(Plan, AddingKeepsWhatTheConfigSays) {
  const std::string text = tree_text("server-8gpu-9nic");
  FakeHost before(text);
  Plan first = plan_of(before);
  first.fabric->nics[2].mtu_bytes = 4000;
  first.fabric->poller.spin_us = 7;
  // The kernel's drivers have the NICs, DHCP has not run, a cloud's route is there already.
  FakeHost booted(text.substr(0, text.find("address if=")) +
                  "route if=ens1f0 via=10.77.1.1 metric=900");
  write_config(booted, *first.fabric);
  const Plan plan = plan_of(booted, adding());
  EXPECT_FALSE(plan.has_faults());
  EXPECT_EQ(*plan.fabric, *first.fabric);
  EXPECT_EQ(plan.resources.size(), first.resources.size());
}

TEST(Plan, AddingWithoutAMissingNicKeepsTheOthers) {
  std::string text = tree_text("server-8gpu-9nic");
  FakeHost before(text);
  const Plan first = plan_of(before);
  for (const char* verb : {"\npci path=", "\nnet path="}) {
    const auto at = text.find("/0000:1b:00.0", text.find(verb));
    const auto begin = text.rfind('\n', at);
    text.erase(begin, text.find('\n', at) - begin);
  }
  FakeHost host(text);
  write_config(host, *first.fabric);
  const Plan plan = plan_of(host, adding());
  EXPECT_FALSE(plan.has_faults());
  EXPECT_EQ(plan.fabric->nics.size(), 7U);
  ASSERT_EQ(plan.notes.size(), 1U);
  EXPECT_EQ(plan.notes[0].problem.where, "ztcp0");
}

TEST(Plan, AnotherNicInItsPlaceIsAFault) {
  FakeHost host(tree_text("server-8gpu-9nic"));
  Plan first = plan_of(host);
  first.fabric->nics[0].mac.bytes[5] ^= 0xff;
  write_config(host, *first.fabric);
  EXPECT_THAT(only_fault(plan_of(host, adding())).problem.what,
              HasSubstr("another NIC took its place"));
}

TEST(Plan, ANicThatCameSinceIsAdded) {
  FakeHost host(tree_text("vlan"));
  PlanRequest request;
  request.nics = 1;
  request.per_gpu_mib = 1024;
  request.spare_mib = 0;
  const Plan first = plan_of(host, request);
  ASSERT_EQ(first.fabric->nics.size(), 1U);
  ASSERT_TRUE(set_up(host, first.resources).complete());
  const Plan plan = plan_of(host, adding());
  ASSERT_EQ(plan.fabric->nics.size(), 2U);
  EXPECT_EQ(plan.fabric->nics[0], first.fabric->nics[0]);
  EXPECT_EQ(plan.fabric->nics[1].name, "ztcp1");
  EXPECT_EQ(plan.fabric->nics[1].pci, "0000:00:04.0");
  // And once more: nothing came.
  ASSERT_TRUE(set_up(host, plan.resources, Scope::kMore).complete());
  EXPECT_THAT(dry_run_of(host, adding()).changes, IsEmpty());
}

TEST(Plan, SettingsOfTheOperatorSurvive) {
  FakeHost host(tree_text("server-8gpu-9nic"));
  const Plan first = plan_of(host);
  ASSERT_TRUE(set_up(host, first.resources).complete());
  config::Fabric edited = *first.fabric;
  edited.name = "blue";
  edited.tcp.pacing = false;
  write_config(host, edited);
  EXPECT_EQ(*plan_of(host).fabric, edited);
}

TEST(Plan, AFabricOfSoftwareNicsIsLeftAlone) {
  FakeHost host(tree_text("server-8gpu-9nic"));
  write_config(host, *plan_local({}));
  EXPECT_THAT(only_fault(plan_of(host)).problem.what, HasSubstr("is a fabric of software NICs"));
}

}  // namespace
}  // namespace ztcp::setup
