// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// libibverbs and libmlx5 behind DPDK's mlx5 driver: opened when the first NIC of the driver "mlx5"
// is, never at the plugin's load.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "core/result.h"

namespace ztcp::link::mlx5 {

struct RdmaCoreCall {
  const char* name;
  const char* version;
  bool is_of_verbs;  // libibverbs's; else libmlx5's.
  bool came_later;   // A library without it will do.
  void** slot;
};

std::span<const RdmaCoreCall> rdma_core_calls();

struct RdmaCoreNames {
  const char* verbs = "libibverbs.so.1";
  const char* mlx5 = "libmlx5.so.1";
};

// Fills all slots, or none. The error is a sentence for the operator, without a full stop.
Result<void, std::string> load_rdma_core(const RdmaCoreNames& names = {});

}  // namespace ztcp::link::mlx5
