// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Whole runs on the machines of tests/data/trees: what is planned there, carried out and taken
// back.
#include <gtest/gtest.h>

#include "config/file/load.h"
#include "tests/unit/tools/setup/bare_machine.h"
#include "tools/ztcp_setup/plan/plan.h"

namespace ztcp::setup {
namespace {

using test::all_of;
using test::expect_same;
using test::FakeHost;

FakeHost machine(const std::string& tree) {
  return FakeHost(ztcp::test::Tree::read(std::string(ZTCP_TREES) + "/" + tree + ".tree"));
}

struct WholeRun {
  std::string name;
  std::string tree;
  Request request;
};

std::vector<WholeRun> whole_runs() {
  Request class_b;
  class_b.no_iommu = true;
  Request without_gpus = class_b;
  without_gpus.nics = Request::kAllNics;
  without_gpus.per_gpu_mib = without_gpus.spare_mib = 1024;
  Request for_a_group = without_gpus;
  for_a_group.no_iommu = false;
  for_a_group.group = "ztcp";
  Request taken_by_name = without_gpus;
  taken_by_name.selection.take = {"eth1", "0000:00:04.0"};
  return {{"class_a", "server-8gpu-9nic", {}},
          {"class_b", "cloud-flat", class_b},
          {"for_a_group_with_grubby", "vlan", for_a_group},
          {"leases", "dhcp", taken_by_name}};
}

class WholeRuns : public testing::TestWithParam<WholeRun> {};

TEST_P(WholeRuns, AreTakenBack) {
  FakeHost host = machine(GetParam().tree);
  const FakeHost::State bare = host.state;
  PlanInput input{host, GetParam().request, std::nullopt, "", ""};
  input.request.config_path = config::kDefaultPath;
  const Plan plan = make_plan(input);
  ASSERT_TRUE(plan.fabric && !plan.has_faults());
  ASSERT_FALSE(plan.wishes.empty());
  const Outcome done = test::set_up(host, plan.wishes);
  ASSERT_TRUE(done.complete()) << all_of(done.faults);
  for (const config::Nic& nic : plan.fabric->nics)
    EXPECT_EQ(host.state.nics.at(nic.pci).driver, "vfio-pci") << nic.pci;
  const Outcome undone = test::undo(host);
  ASSERT_TRUE(undone.complete()) << all_of(undone.faults);
  expect_same(host.state, bare);
}

INSTANTIATE_TEST_SUITE_P(Trees, WholeRuns, testing::ValuesIn(whole_runs()),
                         [](const auto& run) { return run.param.name; });

}  // namespace
}  // namespace ztcp::setup
