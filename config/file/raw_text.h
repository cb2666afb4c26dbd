// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Reads a config's text before toml++ does: finds characters beyond ASCII, whose columns it would
// count as bytes, and keys that are nested too deep.
#pragma once

#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "config/file/parse_state.h"

namespace ztcp::config {

// The text with a '?' in place of each character beyond ASCII; a column is a character.
std::string in_ascii(std::string_view text);
std::set<Position> places_beyond_ascii(std::string_view text);

// Dotted keys make nested tables, which toml++ destroys recursively: a long enough key overflows
// the process's stack. toml++ itself limits the nesting of values. This is far more than any of our
// keys, or a typing error, has in a line.
inline constexpr std::size_t kMostDots = 16;

// The place of the first dot too many in a line, outside strings and comments.
std::optional<Position> place_too_deep(std::string_view text);

}  // namespace ztcp::config
