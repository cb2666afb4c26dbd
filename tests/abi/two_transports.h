// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#pragma once

#include <memory>

#include "config/settings.h"
#include "transport/transport.h"

namespace ztcp::test {

// The ustack beside the transport in memory: over DPDK (ustack_over_dpdk.cc), or over links in
// memory (ustack_in_memory.cc), which needs nothing and can run under sanitizers.
Result<std::unique_ptr<Transport>> make_ustack(const config::Fabric& fabric);

// What is beside it: the transport in memory (rdma_in_memory.cc), or verbs over devices in memory
// (rdma_over_fake.cc).
Result<std::unique_ptr<Transport>> make_rdma(const config::Fabric& fabric);

}  // namespace ztcp::test
