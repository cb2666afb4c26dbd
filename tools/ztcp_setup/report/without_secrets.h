// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The config as logs and terminals may have it: --dry-run is for showing to others.
#pragma once

#include <string>

namespace ztcp::setup {

// The same, with "(not shown)" for what a line of it says of the cluster key.
std::string without_secrets(const std::string& config_text);

}  // namespace ztcp::setup
