// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The config as logs and terminals may have it: --dry-run is for showing to others.
#pragma once

#include <string>

namespace ztcp::setup {

// The same, with "(not shown)" for each run of hex digits as long as a cluster key, however the
// file writes it: nothing else there is so long.
std::string without_secrets(const std::string& config_text);

}  // namespace ztcp::setup
