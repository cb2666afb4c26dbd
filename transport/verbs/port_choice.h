// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Which ports of RDMA devices are taken where verbs were asked for and no config names any: those
// that NCCL's own network would take, in its order.
#pragma once

#include <string>

#include <tl/expected.hpp>

#include "config/settings.h"
#include "transport/core/local_addresses.h"
#include "transport/verbs/api.h"
#include "transport/verbs/nccl_variables.h"

namespace ztcp::verbs {

// `settings` with the ports for NICs that are active and that NCCL_IB_HCA means, agreed upon over
// `exchange`. One that can't be used, though it is meant, is warned of. An error is why there is
// none, with what there is.
tl::expected<config::Fabric, std::string> fabric_of(const Api& api, config::Fabric settings,
                                                    const NcclVariables& variables,
                                                    const LocalAddress& exchange,
                                                    const std::string& sys_root = "/sys");

}  // namespace ztcp::verbs
