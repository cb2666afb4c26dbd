// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Settings of a network driver through the kernel's ethtool ioctls: channels, rings, interrupt
// coalescing, pause frames, offload features and the driver's private flags. Features and flags go
// by name; their numbers depend on the running kernel.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "tools/ztcp_setup/host/interface_state.h"

namespace ztcp::setup {

// Leaves out groups that the driver does not report, and features that cannot be changed.
Result<std::vector<SettingGroup>> read_settings(const std::string& link);
// The largest number of combined channels, or of channels per direction.
std::optional<std::uint32_t> read_most_queues(const std::string& link);
// Leaves other settings unchanged. read_settings() shows whether the driver applied it.
Status write_settings(const std::string& link, const SettingGroup& wanted);

}  // namespace ztcp::setup
