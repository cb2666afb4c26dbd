// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Programs of the distribution that keep a state for us: systemctl, grubby, update-grub.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "tools/ztcp_setup/host/host.h"
#include "tools/ztcp_setup/host/place_file.h"

namespace ztcp::setup {

inline constexpr std::chrono::seconds kUnitLimit{60};
// update-grub looks at every disk; dracut builds images.
inline constexpr std::chrono::seconds kProgramLimit{300};

Done run_program(Host& host, const std::vector<std::string>& argv, std::chrono::seconds limit);

// The last line of what a program said.
std::string last_line(std::string text);

}  // namespace ztcp::setup
