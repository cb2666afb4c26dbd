// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#pragma once

#include <memory>

#include "config/settings.h"
#include "transport/transport.h"

namespace ztcp::test {

// The ustack transport: over DPDK (ustack_over_dpdk.cc), or over in-memory links
// (ustack_in_memory.cc), which have no requirements and can run under sanitizers.
Result<std::unique_ptr<Transport>> make_ustack(const config::Fabric& fabric);

// The other transport: in memory (rdma_in_memory.cc), or verbs over in-memory devices
// (rdma_over_fake.cc).
Result<std::unique_ptr<Transport>> make_rdma(const config::Fabric& fabric);

}  // namespace ztcp::test
