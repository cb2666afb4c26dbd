// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/comms/comm_settings.h"

#include <utility>

#include "core/log.h"

namespace ztcp::comms {
namespace {

constexpr int kMostClass = 255;

}  // namespace

std::optional<std::uint8_t> dscp_of(int traffic_class) {
  if (traffic_class < 0 || traffic_class > kMostClass) return std::nullopt;
  return static_cast<std::uint8_t>(traffic_class >> 2);
}

CommSettings TrafficClasses::settings_for(const CommOptions& options, const std::string& nic,
                                          std::uint16_t dscp_of_nic) {
  return {.communicator = options.communicator,
          .dscp = dscp_for(options.traffic_class, nic, dscp_of_nic)};
}

std::optional<std::uint8_t> TrafficClasses::dscp_for(int traffic_class, const std::string& nic,
                                                     std::uint16_t dscp_of_nic) {
  constexpr int kNone = -1;
  const std::optional<std::uint8_t> dscp = dscp_of(traffic_class);
  if (!dscp) {
    if (traffic_class != kNone && !std::exchange(has_refused_, true))
      log::warn(
          "{}: traffic class {} of a communicator is refused: it is outside 0..{}; its packets "
          "have DSCP {} by dscp in [nic]; correct trafficClass in the application's ncclConfig_t",
          nic, traffic_class, kMostClass, dscp_of_nic);
    return std::nullopt;
  }
  if (!told_.test(*dscp)) {
    told_.set(*dscp);
    log::info("{}: packets of a communicator have DSCP {}, by its traffic class {}", nic, *dscp,
              traffic_class);
  }
  return dscp;
}

}  // namespace ztcp::comms
