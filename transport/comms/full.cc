// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/full.h"

#include <fmt/format.h>

#include "transport/comms/doorbell.h"

namespace ztcp::comms {

std::string full_line(const std::string& device, const config::Fabric& fabric) {
  return fmt::format(
      "{}: all {} connections of this device are taken, sends and receives together: raise "
      "max_connections in [tcp] of {} (up to {}), or let NCCL open fewer "
      "(NCCL_NCHANNELS_PER_NET_PEER=1)",
      device, fabric.tcp.max_connections,
      fabric.path.empty() ? "a config, which ZTCP_CONFIG names" : fabric.path, Doorbell::kCapacity);
}

}  // namespace ztcp::comms
