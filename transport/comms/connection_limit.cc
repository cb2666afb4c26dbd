// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/connection_limit.h"

#include <fmt/format.h>

namespace ztcp::comms {

std::string connection_limit_line(const std::string& device, const config::Fabric& fabric,
                                  std::uint32_t most) {
  using config::kMostConnections;
  const std::string file = fabric.path.empty() ? "a config, which ZTCP_CONFIG names" : fabric.path;
  const std::string raise =
      most < kMostConnections ? fmt::format("raise max_connections in [tcp] of {} (up to {}), or ",
                                            file, kMostConnections)
                              : std::string();
  return fmt::format(
      "{}: connection limit reached: {} of {} (tcp.max_connections), sends and receives together: "
      "{}let NCCL open fewer on all hosts (NCCL_NCHANNELS_PER_NET_PEER=1)",
      device, most, most, raise);
}

}  // namespace ztcp::comms
