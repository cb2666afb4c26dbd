// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Scans one line of a file for TOML strings and comments, for errors that are found before or
// after the parser runs.
#pragma once

#include <cstddef>
#include <optional>
#include <string_view>

namespace ztcp::config {

// Calls visit(index, character) for each character outside strings and comments, until it returns
// false. Returns the index of a quote that the line does not close.
template <class Visit>
std::optional<std::size_t> scan_unquoted(std::string_view line, Visit&& visit) {
  char quote = 0;  // The quote that opened the current string; 0: outside.
  std::size_t begin = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != 0) {
      if (c == '\\' && quote == '"')
        ++i;
      else if (c == quote)
        quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
      begin = i;
    } else if (c == '#' || !visit(i, c)) {
      break;
    }
  }
  return quote == 0 ? std::nullopt : std::optional(begin);
}

}  // namespace ztcp::config
