// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The one statistics page of this process, which the plugin makes at its start and all transports
// feed. Any thread may call these.
#pragma once

#include <memory>

#include "transport/stats/page_writer.h"

namespace ztcp::stats {

void set_process_page(std::shared_ptr<Page> page);

// Null: there is none, or this is a forked child.
std::shared_ptr<Page> process_page();

// The process ends: the page's file goes. Neither locks nor allocates, since a signal handler may
// have called exit().
void end_process_page() noexcept;

}  // namespace ztcp::stats
