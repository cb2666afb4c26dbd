// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// From the links that a NIC opens, one for each queue, to those that its engines use: each hands
// back what is addressed to itself, and the queues of one port hand each other what the device
// mixed up.
#pragma once

#include <memory>
#include <vector>

#include "transport/link/link.h"

namespace ztcp::ustack {

std::vector<std::unique_ptr<link::Link>> whole_links(
    std::vector<std::unique_ptr<link::Link>> opened);

}  // namespace ztcp::ustack
