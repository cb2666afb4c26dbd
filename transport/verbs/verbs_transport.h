// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The verbs transport: ports of RDMA devices of this host, over reliable-connected queue pairs,
// behind the Transport seam. Nothing runs before the first listen or connect.
#pragma once

#include <memory>
#include <vector>

#include "config/settings.h"
#include "core/result.h"
#include "transport/transport.h"
#include "transport/verbs/device.h"

namespace ztcp::verbs {

// `fabric`: the settings of connections; its NICs are not used.
Result<std::unique_ptr<Transport>> create(const config::Fabric& fabric,
                                          std::vector<Device> devices);

}  // namespace ztcp::verbs
