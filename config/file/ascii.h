// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Finds the characters of a text beyond ASCII; a column is a character.
#pragma once

#include <set>
#include <string>
#include <string_view>

#include "config/file/parse_state.h"

namespace ztcp::config {

// The text with a '?' in place of each such character.
std::string in_ascii(std::string_view text);
std::set<Position> places_beyond_ascii(std::string_view text);

}  // namespace ztcp::config
