// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Dotted keys make tables in tables, which toml++ destroys one inside the other: a long enough key
// ends the process's stack. It limits values in values by itself.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

#include "config/file/parse_state.h"

namespace ztcp::config {

// Far more than any key of ours, or a typing error, has in a line.
inline constexpr std::size_t kMostDots = 16;

// Of the first dot too many in a line, strings and comments apart.
std::optional<Position> place_too_deep(std::string_view text);

}  // namespace ztcp::config
