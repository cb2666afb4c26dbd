// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Settings of a network driver as the kernel's ethtool ioctls tell and take them: channels, rings,
// interrupt coalescing, pause frames, offload features and the driver's private flags. Features and
// flags go by their names; their numbers are the running kernel's own.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "tools/ztcp_setup/host/interface_state.h"
#include "transport/core/result.h"

namespace ztcp::setup {

// A group that the driver doesn't tell is not among them; of the features, those that can be
// changed are.
Result<std::vector<SettingGroup>> read_settings(const std::string& link);
// Of channels for both directions, or of those for each.
std::optional<std::uint32_t> read_most_queues(const std::string& link);
// Values that are not named stay. Whether the driver did it, read_settings() tells.
Status write_settings(const std::string& link, const SettingGroup& wanted);

}  // namespace ztcp::setup
