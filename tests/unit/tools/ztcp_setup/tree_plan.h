// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What set-up decides about the machines of tests/data/trees, asked as the command line asks.
#pragma once

#include <string>

#include "tests/unit/tools/ztcp_setup/fake_host.h"
#include "tools/ztcp_setup/run/commands.h"

namespace ztcp::setup::test {

std::string tree_text(const std::string& name);

// Where it is by default, as a file of root's.
void write_config(FakeHost& host, const config::Fabric& fabric);

// With the config that is there. One that can't be read fails the test.
Plan plan_of(FakeHost& host, PlanRequest request = {});
DryRun dry_run_of(FakeHost& host, PlanRequest request = {});

// Fails the test unless the plan has exactly one, with what mends it.
config::Check only_fault(const Plan& plan);

PlanRequest without_iommu();
PlanRequest nics_without_gpus();  // All of them, 1 GiB each, without an IOMMU.
PlanRequest for_a_group();        // The same behind an IOMMU, for members of ztcp.
PlanRequest with_ustack();        // Over our own TCP, or not at all.
PlanRequest over_rdma();          // For members of ztcp, too.
PlanRequest taken_by_name();      // Of a machine each of whose NICs has a default route.

}  // namespace ztcp::setup::test
