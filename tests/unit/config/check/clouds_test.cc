// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/config/check/verbs_host.h"

namespace ztcp::config {
namespace {

using testing::HasSubstr;
using testing::StartsWith;

TEST_F(CheckVerbs, ErdmaWithAnMtuThatBreaksLl128IsAWarning) {
  const auto is_told = [&] {
    for (const Check& check : run_checks(fabric_, machine_, {}, {}, addresses_))
      if (check.name == "rdma_cloud") return true;
    return false;
  };
  EXPECT_FALSE(is_told()) << "mlx5_core is no trap";
  tree_.remove("sys/class/infiniband/mlx5_0/device");
  tree_.add("link path=sys/class/infiniband/mlx5_0/device/driver to=../../bus/pci/drivers/erdma\n");
  tree_.add_file("sys/class/net/eth1/mtu", "1500\n");
  const Problem said = warning("rdma_cloud");
  EXPECT_THAT(said.what, HasSubstr("mlx5_0 is eRDMA, and eth1 has an MTU of 1500"));
  EXPECT_THAT(said.mend, StartsWith("sudo ip link set dev eth1 mtu 8500"));
  for (const char* const mtu : {"8500\n", "1400\n"}) {
    tree_.add_file("sys/class/net/eth1/mtu", mtu);
    EXPECT_THAT(good("rdma_cloud"), HasSubstr("is eRDMA"));
  }
}

}  // namespace
}  // namespace ztcp::config
