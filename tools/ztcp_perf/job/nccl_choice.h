// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The network that NCCL of this process will use, as its variables choose it. Pure.
#pragma once

#include <string>
#include <vector>

#include "tools/common/nccl_variables.h"

namespace ztcp::perf::job {

struct NcclChoice {
  // "NCCL_NET_PLUGIN=/opt/ztcp/libnccl-net.so, NCCL_NET not set"
  std::string variables;
  // The names that NCCL tries to open, in its order; empty: it loads no plugin.
  std::vector<std::string> libraries;
  // Why NCCL uses no plugin of the name ztcp, whatever it loads, and the mending command; empty: it
  // does.
  std::string refusal;
  std::string mend;
};

NcclChoice nccl_choice(const tools::NcclVariables& variables);

}  // namespace ztcp::perf::job
