// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace ztcp::tools {

// Makes another process's text safe for a terminal or a log: bytes that are not printable ASCII
// become '?', so that they can neither control the terminal nor begin a line. At most `limit`
// bytes; "..." replaces the rest.
std::string printable(std::string_view text, std::size_t limit = 1024);

}  // namespace ztcp::tools
