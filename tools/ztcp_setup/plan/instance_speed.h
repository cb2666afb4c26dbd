// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A cloud's documented bandwidth for this instance type, for NICs that report no speed. Only where
// the firmware's tables name the type, and the bandwidth is sustained.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "config/machine/machine.h"

namespace ztcp::setup {

struct InstanceSpeed {
  std::string type;             // "p4d.24xlarge"
  std::uint32_t nic_mbps = 0;   // Maximum of one network card.
  std::uint32_t host_mbps = 0;  // Maximum of all together.

  // Speed of each of `nics` used at the same time.
  std::uint32_t share_mbps(std::size_t nics) const;
};

std::optional<InstanceSpeed> instance_speed(config::Machine& machine);

}  // namespace ztcp::setup
