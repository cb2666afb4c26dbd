// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The plain kernel sockets of ztcp_perf as a plugin, so that they are measured in the same way as
// any other. Listens on ZTCP_REFERENCE_ADDR (default 127.0.0.1).
#include <cstdlib>

#include "plugin/abi/nccl_abi.h"
#include "tools/ztcp_perf/plain_sockets.h"

namespace {

ncclNet_v11_t reference() {
  const char* const address = std::getenv("ZTCP_REFERENCE_ADDR");
  ztcp::perf::listen_plainly_at(address != nullptr ? address : "127.0.0.1");
  ncclNet_v11_t table = ztcp::perf::kPlainSockets;
  table.name = "reference";
  return table;
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const ncclNet_v11_t ncclNetPlugin_v11;
const ncclNet_v11_t ncclNetPlugin_v11 = reference();
