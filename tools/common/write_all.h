// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#pragma once

#include <string_view>

#include "transport/core/result.h"

namespace ztcp::tools {

// To a file descriptor, however many writes that takes.
Status write_all(int fd, std::string_view text);

}  // namespace ztcp::tools
