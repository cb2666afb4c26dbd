// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// What is wrong with a file that is no TOML, in words that need no knowledge of its grammar. The
// parser's own words are for those who wrote it: an open quote is to it an unescaped control
// character.
#pragma once

#include <optional>
#include <string_view>

#include "config/file/parse_state.h"

namespace ztcp::config {

// Of a file that is no text at all: one of a program, or compressed.
std::optional<Finding> why_not_text(std::string_view text);
// Of the line where the parser stopped; absent: the parser's words are the best there are. No value
// of a secret is shown.
std::optional<Finding> explain_syntax(std::string_view text, const Position& place);

}  // namespace ztcp::config
