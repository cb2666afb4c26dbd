// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The distribution's programs that keep a state: systemctl, grubby, update-grub.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "tools/ztcp_setup/host/host.h"
#include "tools/ztcp_setup/host/place_file.h"

namespace ztcp::setup {

inline constexpr std::chrono::seconds kUnitLimit{60};
// update-grub reads every disk; dracut builds images.
inline constexpr std::chrono::seconds kProgramLimit{300};

Done run_program(Host& host, const std::vector<std::string>& argv, std::chrono::seconds limit);

// The last line of a program's output.
std::string last_line(std::string text);

}  // namespace ztcp::setup
