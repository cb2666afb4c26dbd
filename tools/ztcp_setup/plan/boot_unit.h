// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The systemd unit for a ztcp_setup that was not installed from a package.
#pragma once

#include <string>

#include "tools/ztcp_setup/host/host.h"

namespace ztcp::setup {

// The unit's text with the path `program` in it.
std::string unit_text(const std::string& program);
// The text for the running program. Empty where systemd does not run, and where users other than
// root can change the program: root would start it at each boot.
std::string unit_text_here(Host& host);

}  // namespace ztcp::setup
