// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Wraps the links of a NIC, one for each queue, for its engines: each link loops frames to its own
// MAC back, and the queues of one port hand each other the frames that the device delivered to the
// wrong queue.
#pragma once

#include <memory>
#include <vector>

#include "transport/link/link.h"

namespace ztcp::ustack {

std::vector<std::unique_ptr<link::Link>> whole_links(
    std::vector<std::unique_ptr<link::Link>> opened);

}  // namespace ztcp::ustack
