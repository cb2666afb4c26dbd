// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Files that are there whole or not at all, also after a power cut.
#pragma once

#include <string>
#include <string_view>

#include "transport/core/result.h"

namespace ztcp::setup {

// Writes a temporary file beside `path`, syncs it and renames it over `path`. On failure `path` is
// as it was and the temporary file is gone.
Status write_atomically(const std::string& path, std::string_view text);

}  // namespace ztcp::setup
