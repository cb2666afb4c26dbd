// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/full.h"

#include <fmt/format.h>

#include "transport/comms/doorbell.h"

namespace ztcp::comms {

std::string full_line(const std::string& device, const config::Fabric& fabric) {
  return fmt::format(
      "{}: every connection is taken that max_connections = {} allows this device, sends and "
      "receives together: raise it in [tcp] of {} (up to {}), or let NCCL open fewer "
      "(NCCL_NCHANNELS_PER_NET_PEER=1)",
      device, fabric.tcp.max_connections,
      fabric.path.empty() ? "a config, which ZTCP_CONFIG names" : fabric.path, Doorbell::kCapacity);
}

}  // namespace ztcp::comms
