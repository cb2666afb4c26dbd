// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The config without secrets, for logs and terminals: the output of --dry-run gets shared.
#pragma once

#include <string>

namespace ztcp::setup {

// Replaces each run of hex digits as long as a cluster key by "(not shown)", in any syntax: nothing
// else in the file is so long.
std::string without_secrets(const std::string& config_text);

}  // namespace ztcp::setup
