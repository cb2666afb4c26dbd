// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#pragma once

#include <string_view>

#include "core/result.h"

namespace ztcp::tools {

// Writes all of `text` to a file descriptor, with as many calls as needed.
Status write_all(int fd, std::string_view text);

}  // namespace ztcp::tools
