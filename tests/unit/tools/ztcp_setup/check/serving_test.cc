// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <gtest/gtest.h>

#include "tools/ztcp_setup/check/checks.h"

namespace ztcp::setup {
namespace {

using config::Severity;

config::Fabric rdma_fabric(std::initializer_list<const char*> names) {
  config::Fabric fabric;
  for (const char* name : names) {
    config::Nic& nic = fabric.nics.emplace_back();
    nic.name = name;
    nic.driver = config::NicDriver::kVerbs;
  }
  return fabric;
}

config::Check warning(const char* check, const char* nic) {
  return {check, Severity::kWarning, {nic, "is missing", "mend it"}};
}

TEST(Serving, AMissingOnlyDeviceIsAFault) {
  std::vector<config::Check> checks{warning("rdma_device", "ztcp0")};
  judge_serving(rdma_fabric({"ztcp0"}), checks);
  EXPECT_EQ(checks[0].severity, Severity::kFault);
}

TEST(Serving, RefusalOfAllDevicesIsAFault) {
  std::vector<config::Check> checks{warning("rdma_device", "ztcp0"),
                                    warning("rdma_access", "ztcp1"), warning("nccl", "ztcp1")};
  judge_serving(rdma_fabric({"ztcp0", "ztcp1"}), checks);
  EXPECT_EQ(checks[0].severity, Severity::kFault);
  EXPECT_EQ(checks[1].severity, Severity::kFault);
  EXPECT_EQ(checks[2].severity, Severity::kWarning) << "with it the device serves";
}

TEST(Serving, AWorkingDeviceKeepsWarnings) {
  std::vector<config::Check> checks{warning("rdma_device", "ztcp0"), warning("rdma_gid", "ztcp1")};
  judge_serving(rdma_fabric({"ztcp0", "ztcp1"}), checks);
  EXPECT_EQ(checks[0].severity, Severity::kWarning);
}

TEST(Serving, AKernelInterfaceKeepsWarnings) {
  config::Fabric fabric = rdma_fabric({"ztcp0", "ztcp1"});
  fabric.nics[1].driver = config::NicDriver::kSocket;
  std::vector<config::Check> checks{warning("rdma_device", "ztcp0")};
  judge_serving(fabric, checks);
  EXPECT_EQ(checks[0].severity, Severity::kWarning);
}

}  // namespace
}  // namespace ztcp::setup
