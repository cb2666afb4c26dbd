// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <algorithm>
#include <string_view>

#include "config/draft.h"

namespace ztcp::config {
namespace {

bool beyond_ascii(char c) { return (static_cast<unsigned char>(c) & 0x80) != 0; }

// Where in `line` a character beyond ASCII stands outside comments and one-line strings, or right
// after a backslash; npos: nowhere.
std::size_t stray_in_line(std::string_view line) {
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    const char c = line[i];
    if (quote == 0 && c == '#') return std::string_view::npos;
    if (quote == 0 && beyond_ascii(c)) return i;
    if (quote == '"' && c == '\\') {
      if (++i < line.size() && beyond_ascii(line[i])) return i;
    } else if (c == quote) {
      quote = 0;
    } else if (quote == 0 && (c == '"' || c == '\'')) {
      quote = c;
    }
  }
  return std::string_view::npos;
}

}  // namespace

std::optional<Place> stray_character(std::string_view text) {
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);  // A byte order mark is allowed.
  // With multi-line strings about, only the parser can tell where one ends: then no such character
  // is taken anywhere.
  const bool has_long_strings =
      text.find("\"\"\"") != std::string_view::npos || text.find("'''") != std::string_view::npos;
  Place place;
  while (!text.empty()) {
    const std::string_view line = text.substr(0, text.find('\n'));
    std::size_t stray = stray_in_line(line);
    if (has_long_strings)
      for (stray = 0; stray < line.size() && !beyond_ascii(line[stray]);) ++stray;
    if (stray < line.size()) {
      // Columns count characters: the later bytes of one do not.
      for (const char c : line.substr(0, stray))
        if ((static_cast<unsigned char>(c) & 0xc0) != 0x80) ++place.column;
      return place;
    }
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    ++place.line;
  }
  return std::nullopt;
}

}  // namespace ztcp::config
