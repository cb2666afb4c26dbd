// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Explains a TOML syntax error in plain words. The parser's own text assumes that the reader knows
// the grammar: it reports an open quote as an unescaped control character.
#pragma once

#include <optional>
#include <string_view>

#include "config/file/parse_state.h"

namespace ztcp::config {

// Recognizes a binary file, such as a program or an archive. Nothing: `text` is text.
std::optional<Finding> why_not_text(std::string_view text);
// Explains the line at which the parser stopped. Nothing: no explanation is better than the
// parser's text. The explanation shows no secret value.
std::optional<Finding> explain_syntax(std::string_view text, const Position& place);

}  // namespace ztcp::config
