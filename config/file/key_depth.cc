// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/file/key_depth.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace ztcp::config {
namespace {

// Where in the line, counted from 0.
std::optional<std::size_t> dot_too_many(std::string_view line) {
  std::size_t dots = 0;
  char quote = 0;  // Of the string that we are in.
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote != 0) {
      if (c == '\\' && quote == '"')
        ++i;
      else if (c == quote)
        quote = 0;
    } else if (c == '"' || c == '\'') {
      quote = c;
    } else if (c == '#') {
      break;
    } else if (c == '.' && ++dots > kMostDots) {
      return i;
    }
  }
  return std::nullopt;
}

}  // namespace

std::optional<Position> place_too_deep(std::string_view text) {
  for (Position place; !text.empty(); ++place.line) {
    const std::string_view line = text.substr(0, text.find('\n'));
    if (const auto at = dot_too_many(line)) {
      place.column += static_cast<std::uint32_t>(*at);
      return place;
    }
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
  return std::nullopt;
}

}  // namespace ztcp::config
