// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What a cloud promises for this type of instance, where its NICs don't say their speed. Only where
// the firmware's tables name the type, and its documented bandwidth is no burst.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "config/machine/machine.h"

namespace ztcp::setup {

struct InstanceSpeed {
  std::string type;             // "p4d.24xlarge"
  std::uint32_t nic_mbps = 0;   // What one network card carries at most.
  std::uint32_t host_mbps = 0;  // What all of them carry together.

  // Of each of `nics` that are used at once.
  std::uint32_t share_mbps(std::size_t nics) const;
};

std::optional<InstanceSpeed> instance_speed(config::Machine& machine);

}  // namespace ztcp::setup
