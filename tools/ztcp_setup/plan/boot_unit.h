// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The unit of packaging/systemd for a ztcp_setup that no package installed.
#pragma once

#include <string>

#include "tools/ztcp_setup/host/host.h"

namespace ztcp::setup {

// The unit's text with `program`'s path in it.
std::string unit_text(const std::string& program);
// For the program that runs here. Empty where systemd does not run, and where others than root
// could change the program: root would start it at each boot.
std::string unit_text_here(Host& host);

}  // namespace ztcp::setup
