// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <string_view>

#include "config/draft.h"

namespace ztcp::config {
namespace {

// Takes the longest known token at the front of `rest`.
bool take(std::string_view& rest, std::string_view token) {
  if (!rest.starts_with(token)) return false;
  rest.remove_prefix(token.size());
  return true;
}

}  // namespace

std::optional<Place> stray_character(std::string_view text) {
  Place place;
  std::string_view rest = text;
  take(rest, "\xef\xbb\xbf");  // A byte order mark is allowed.
  // Empty outside strings; "#" inside a comment.
  std::string_view ends_with;
  while (!rest.empty()) {
    const char c = rest.front();
    if (c == '\n') {
      if (ends_with.size() == 1) ends_with = {};  // Comments and short strings end here.
      rest.remove_prefix(1);
      place = {place.line + 1, 1};
      continue;
    }
    const std::size_t before = rest.size();
    const bool beyond_ascii = (static_cast<unsigned char>(c) & 0x80) != 0;
    if (beyond_ascii && (ends_with.empty() || ends_with == "\"\"\"")) return place;
    if (ends_with.empty()) {
      for (const std::string_view opening : {"\"\"\"", "'''", "\"", "'", "#"})
        if (take(rest, opening)) {
          ends_with = opening;
          break;
        }
    } else if (c == '\\' && ends_with.front() == '"') {
      take(rest, "\\\"") || take(rest, "\\\\");
    } else if (ends_with != "#" && take(rest, ends_with)) {
      ends_with = {};
    }
    if (rest.size() == before) rest.remove_prefix(1);
    // Columns count characters: the later bytes of one do not.
    if ((static_cast<unsigned char>(c) & 0xc0) != 0x80)
      place.column += static_cast<std::uint32_t>(beyond_ascii ? 1 : before - rest.size());
  }
  return std::nullopt;
}

}  // namespace ztcp::config
