// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tests/unit/tools/ztcp_setup/tree_plan.h"

#include <gtest/gtest.h>

#include "config/file/load.h"
#include "config/machine/text.h"
#include "tests/support/tree.h"

namespace ztcp::setup::test {

std::string tree_text(const std::string& name) {
  return ztcp::test::Tree::read(std::string(ZTCP_TREES) + "/" + name + ".tree");
}

void write_config(FakeHost& host, const config::Fabric& fabric) {
  for (std::string folder = config::folder_of(config::kDefaultPath); folder != "/";
       folder = config::folder_of(folder))
    host.add_folder(folder);
  host.add_file(config::kDefaultPath, config::to_toml(fabric));
}

Plan plan_of(FakeHost& host, PlanRequest request) {
  request.config_path = config::kDefaultPath;
  auto plan = plan_here(host, request);
  EXPECT_TRUE(plan) << to_string(plan.error());
  return plan ? std::move(*plan) : Plan{};
}

DryRun dry_run_of(FakeHost& host, PlanRequest request) {
  request.config_path = config::kDefaultPath;
  auto run = dry_run_here(host, request);
  EXPECT_TRUE(run) << to_string(run.error());
  return run ? std::move(*run) : DryRun{};
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

PlanRequest without_iommu() {
  PlanRequest request;
  request.no_iommu = true;
  return request;
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

PlanRequest with_ustack() {
  PlanRequest request;
  request.transport = Transport::kUstack;
  return request;
}

PlanRequest over_rdma() {
  PlanRequest request;
  request.transport = Transport::kVerbs;
  request.group = "ztcp";
  return request;
}

PlanRequest taken_by_name() {
  PlanRequest request = nics_without_gpus();
  request.selection.take = {"eth1", "0000:00:04.0"};
  return request;
}

}  // namespace ztcp::setup::test
