// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/file/load.h"
#include "tests/unit/tools/ztcp_setup/bare_machine.h"
#include "tests/unit/tools/ztcp_setup/tree_plan.h"
#include "tools/ztcp_setup/local/local.h"
#include "tools/ztcp_setup/plan/plan.h"
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
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

PlanRequest adding() {
  PlanRequest request;
  request.mode = Mode::kAdd;
  return request;
}

TEST(ChooseNics, TheDefaultRouteStaysUntouched) {
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

// NICs of a bond, with a VLAN on it that has the route, and of a bridge.
TEST(ChooseNics, TheNicsBelowADefaultRouteStayUntouched) {
  const auto machine = [](const std::string& upper, const std::string& more) {
    std::string tree = "node id=0 cpus=0-7 memory_mib=65536\n";
    for (const std::string n : {"0", "1", "2"})
      tree += "pci path=pci0000:00/0000:00:0" + n + ".0 id=1d0f:ec20 class=020000 numa=0 " +
              "driver=ena\nnet path=pci0000:00/0000:00:0" + n + ".0 name=eth" + n +
              " mac=02:00:00:00:00:0" + n + " mtu=9000 speed=100000\n";
    tree += "dir path=sys/devices/virtual/net/" + upper + "\nlink path=sys/class/net/" + upper +
            " to=../../devices/virtual/net/" + upper + "\n";
    for (const std::string n : {"0", "1"})
      tree += "link path=sys/devices/pci0000:00/0000:00:0" + n + ".0/net/eth" + n +
              "/master to=../../../../virtual/net/" + upper + "\n";
    return tree + more + "address if=eth2 ip=10.0.2.2/24\n";
  };
  for (const std::string& tree :
       {machine("bond0", "address if=bond0 ip=10.0.0.2/24\nroute if=bond0 via=10.0.0.1\n"),
        machine("br0", "address if=br0 ip=10.0.0.2/24\nroute if=br0 via=10.0.0.1\n")}) {
    FakeHost host(tree);
    for (const auto transport : {Transport::kUstack, Transport::kSockets}) {
      PlanRequest request;
      if (transport == Transport::kUstack) request = nics_without_gpus();
      request.transport = transport;
      const Plan plan = plan_of(host, request);
      ASSERT_TRUE(plan.fabric);
      ASSERT_EQ(plan.fabric->nics.size(), 1U) << "the machine lives on the others";
      EXPECT_EQ(to_string(plan.fabric->nics[0].address), "10.0.2.2/24");
    }
  }
}

// A NIC that shares its group with another of ours cannot be driven by a second process.
TEST(ChooseNics, TwoNicsOfOneGroupAreRefusedForGpusAndForAnyProcess) {
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

TEST(ChooseNics, AddingKeepsTheConfigsValues) {
  const std::string text = tree_text("server-8gpu-9nic");
  FakeHost before(text);
  Plan first = plan_of(before);
  first.fabric->nics[2].mtu_bytes = 4000;
  first.fabric->poller.spin_us = 7;
  // Kernel drivers have the NICs, DHCP has not run, and a cloud's route exists already.
  FakeHost booted(text.substr(0, text.find("address if=")) +
                  "route if=ens1f0 via=10.77.1.1 metric=900");
  write_config(booted, *first.fabric);
  const Plan plan = plan_of(booted, adding());
  EXPECT_FALSE(plan.has_faults());
  EXPECT_EQ(*plan.fabric, *first.fabric);
  EXPECT_EQ(plan.resources.size(), first.resources.size());
}

TEST(ChooseNics, AddingWithoutAMissingNicKeepsTheOthers) {
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

TEST(ChooseNics, AnotherNicInItsPlaceIsAFault) {
  FakeHost host(tree_text("server-8gpu-9nic"));
  Plan first = plan_of(host);
  first.fabric->nics[0].mac.bytes[5] ^= 0xff;
  write_config(host, *first.fabric);
  EXPECT_THAT(only_fault(plan_of(host, adding())).problem.what,
              HasSubstr("another NIC took its place"));
}

TEST(ChooseNics, ANewNicIsAdded) {
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
  // And once more: no new NIC.
  ASSERT_TRUE(set_up(host, plan.resources, Scope::kMore).complete());
  EXPECT_THAT(dry_run_of(host, adding()).changes, IsEmpty());
}

}  // namespace
}  // namespace ztcp::setup
