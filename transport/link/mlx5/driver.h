// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// DPDK's mlx5 driver inside this library. Its constructors call rdma-core and set variables of the
// environment, which no job over another transport should see: the build takes them out of the
// library's list (meson.build), and they run here.
#pragma once

#include <string>

#include "core/result.h"

namespace ztcp::link::mlx5 {

// Registers the driver with EAL, which must run. Later calls return the first one's result. The
// error is a sentence for the operator, without a full stop.
Result<void, std::string> start_driver();

}  // namespace ztcp::link::mlx5
