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
#include "transport/stats/capture_tap.h"

namespace ztcp::ustack {

struct WholeLinks {
  std::vector<std::unique_ptr<link::Link>> links;
  // For each link, where its frames can be captured: each once, by the queue that received it.
  std::vector<std::shared_ptr<stats::CaptureTap>> taps;
};

WholeLinks whole_links(std::vector<std::unique_ptr<link::Link>> opened);

}  // namespace ztcp::ustack
