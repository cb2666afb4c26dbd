// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// In place of driver.cc in a build without DPDK's mlx5 driver.
#include "transport/link/mlx5/driver.h"

namespace ztcp::link::mlx5 {

Result<void, std::string> start_driver() {
  return tl::unexpected<std::string>(
      "this build of ztcp has no mlx5 driver (-Dmlx5=disabled, or a DPDK without it); "
      "driver = \"xdp\" or \"verbs\" serves such a NIC");
}

}  // namespace ztcp::link::mlx5
