// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/check/check.h"
#include "config/machine/live_machine.h"
#include "tests/support/tree.h"

namespace ztcp::config {
namespace {

using testing::HasSubstr;

// A host with an RDMA device that all is well with; each test spoils one thing.
class CheckVerbs : public testing::Test {
 protected:
  CheckVerbs() {
    fabric_.path = "/etc/ztcp.conf";
    fabric_.run_dir = "/nowhere";  // No locks are needed.
    Nic nic;
    nic.name = "ztcp0";
    nic.driver = NicDriver::kVerbs;
    nic.device = "mlx5_0";
    nic.address = *parse_ip_prefix("10.0.0.5/24");
    fabric_.nics.push_back(nic);
    addresses_.push_back({.interface = "eth1", .index = 3, .prefix = nic.address, .is_up = true});
  }

  Check said(const std::string& name) {
    Check found;
    for (const Check& check : run_checks(fabric_, machine_, {}, {}, addresses_)) {
      EXPECT_NE(check.severity, Severity::kFault) << to_string(check.problem);
      if (check.name == name) found = check;
    }
    return found;
  }
  // Nothing of it keeps the other NICs from serving.
  Problem warning(const std::string& name) {
    const Check check = said(name);
    EXPECT_EQ(check.severity, Severity::kWarning) << to_string(check.problem);
    EXPECT_FALSE(check.problem.mend.empty());
    return check.problem;
  }

  test::Tree tree_{
      "file path=sys/class/infiniband/mlx5_0/ports/1/state text=4: ACTIVE\\n\n"
      "file path=dev/infiniband/uverbs0 text=\n"};
  LiveMachine machine_{tree_.root()};
  Fabric fabric_;
  AddressList addresses_;
};

TEST_F(CheckVerbs, AHealthyHostIsGood) {
  for (const char* name : {"rdma_device", "rdma_access", "rdma_address"})
    EXPECT_EQ(said(name).severity, Severity::kGood) << name;
  EXPECT_THAT(said("rdma_address").problem.what, HasSubstr("10.0.0.5/24 is on eth1"));
}

TEST_F(CheckVerbs, ADeviceThatIsGoneIsNamedWithThoseThatAreThere) {
  fabric_.nics[0].device = "mlx5_9";
  EXPECT_THAT(warning("rdma_device").what,
              HasSubstr("no RDMA device mlx5_9 is here; this host has mlx5_0"));
}

TEST_F(CheckVerbs, APortThatIsDownOrMissingIsNamed) {
  tree_.add_file("sys/class/infiniband/mlx5_0/ports/1/state", "1: DOWN\n");
  EXPECT_THAT(warning("rdma_device").what, HasSubstr("port 1 of mlx5_0 is \"1: DOWN\""));
  fabric_.nics[0].device_port = 2;
  EXPECT_THAT(warning("rdma_device").what, HasSubstr("mlx5_0 has no port 2"));
}

TEST_F(CheckVerbs, WithoutADeviceFileTheModuleIsNamed) {
  tree_.remove("dev/infiniband/uverbs0");
  EXPECT_THAT(warning("rdma_access").mend, HasSubstr("modprobe ib_uverbs"));
}

TEST_F(CheckVerbs, AnAddressOfAnotherHostIsNamed) {
  addresses_.clear();
  EXPECT_THAT(warning("rdma_address").what, HasSubstr("\"10.0.0.5/24\" is none of this host's"));
}

}  // namespace
}  // namespace ztcp::config
