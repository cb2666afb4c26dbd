// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Behaviour common to interfaces and RDMA devices, beside choose_interfaces_test.cc and
// choose_rdma_test.cc.
#include "tools/ztcp_setup/plan/kernel_nics.h"

#include <gtest/gtest.h>

#include "tests/unit/tools/ztcp_setup/bare_machine.h"
#include "tests/unit/tools/ztcp_setup/tree_plan.h"
#include "tools/ztcp_setup/report/report.h"

namespace ztcp::setup {
namespace {

using test::FakeHost;
using test::plan_of;
using test::tree_text;

class KernelNics : public testing::TestWithParam<Transport> {
 protected:
  static PlanRequest request() {
    PlanRequest request;
    request.transport = GetParam();
    return request;
  }
};

// Its NICs are the kernel's again, and the config still has the values for ztcp's own TCP.
TEST_P(KernelNics, NicsOfUstackAreDescribedAnew) {
  FakeHost fresh(tree_text("rdma"));
  const Plan wanted = plan_of(fresh, request());
  ASSERT_TRUE(wanted.fabric) << to_text(wanted, {});

  FakeHost host(tree_text("rdma"));
  config::Fabric before = *wanted.fabric;
  before.hugepages = {.page_kib = 2048, .per_process_mib = 5120, .spare_mib = 10240};
  for (config::Nic& nic : before.nics) {
    const config::HostNic& found = wanted.host_nic(nic);
    nic = {};
    nic.name = "our" + found.interface;
    nic.driver = config::NicDriver::kPci;
    nic.pci = found.pci;
    nic.mac = found.mac;
    nic.kernel_driver = found.driver;
    nic.address = *found.address;
    nic.speed_mbps = 7;
  }
  test::write_config(host, before);
  const Plan plan = plan_of(host, request());
  ASSERT_TRUE(plan.fabric) << to_text(plan, {});
  EXPECT_EQ(plan.fabric->nics, wanted.fabric->nics);
}

TEST_P(KernelNics, TheRequestedNumberIsTheLimit) {
  FakeHost host(tree_text("rdma"));
  PlanRequest one = request();
  one.nics = 1;
  const Plan plan = plan_of(host, one);
  ASSERT_TRUE(plan.fabric) << to_text(plan, {});
  EXPECT_EQ(plan.fabric->nics.size(), 1U);
  std::size_t beyond = 0;
  for (const config::HostNic& nic : plan.topology.nics)
    if (nic.unfit == "is beyond the number given by --nics") ++beyond;
  EXPECT_EQ(beyond, 1U);
}

INSTANTIATE_TEST_SUITE_P(Transports, KernelNics,
                         testing::Values(Transport::kSockets, Transport::kVerbs),
                         [](const auto& tested) {
                           return tested.param == Transport::kVerbs ? "verbs" : "sockets";
                         });

}  // namespace
}  // namespace ztcp::setup
