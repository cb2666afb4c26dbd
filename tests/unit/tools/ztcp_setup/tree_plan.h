// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Set-up's decisions about the machines of tests/data/trees, requested as by the command line.
#pragma once

#include <string>

#include "tests/unit/tools/ztcp_setup/fake_host.h"
#include "tools/ztcp_setup/run/commands.h"

namespace ztcp::setup::test {

std::string tree_text(const std::string& name);

// Written to the default path, owned by root.
void write_config(FakeHost& host, const config::Fabric& fabric);

// With the present config. An unreadable one fails the test.
Plan plan_of(FakeHost& host, PlanRequest request = {});
DryRun dry_run_of(FakeHost& host, PlanRequest request = {});

// Fails the test unless the plan has exactly one fault, with a mend.
config::Check only_fault(const Plan& plan);

PlanRequest without_iommu();
PlanRequest nics_without_gpus();  // All of them, 1 GiB each, without an IOMMU.
PlanRequest for_a_group();        // The same with an IOMMU, for members of group ztcp.
PlanRequest with_ustack();        // ztcp's own TCP, or a refusal.
PlanRequest over_rdma();          // Also for members of group ztcp.
PlanRequest taken_by_name();      // For a machine with a default route on each NIC.

}  // namespace ztcp::setup::test
