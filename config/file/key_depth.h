// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Dotted keys make nested tables, which toml++ destroys recursively: a long enough key overflows
// the process's stack. toml++ itself limits the nesting of values.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "config/file/parse_state.h"

namespace ztcp::config {

// Far more than any of our keys, or a typing error, has in a line.
inline constexpr std::size_t kMostDots = 16;

// The place of the first dot too many in a line, outside strings and comments.
std::optional<Position> place_too_deep(std::string_view text);

}  // namespace ztcp::config
