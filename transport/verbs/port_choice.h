// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Which ports of RDMA devices are taken where verbs were asked for and no config names any: those
// that NCCL's own network would take, in its order.
#pragma once

#include <string>

#include "config/settings.h"
#include "core/local_addresses.h"
#include "core/result.h"
#include "transport/verbs/api.h"
#include "transport/verbs/nccl_variables.h"

namespace ztcp::verbs {

// `settings` with the active ports that NCCL_IB_HCA selects as NICs; their exchange goes over
// `exchange`. A port that is selected but can't be used causes a warning. An error says why there
// is no port, and lists the existing ones.
Result<config::Fabric, std::string> fabric_of(const Api& api, config::Fabric settings,
                                              const NcclVariables& variables,
                                              const LocalAddress& exchange,
                                              const std::string& sys_root = "/sys");

}  // namespace ztcp::verbs
