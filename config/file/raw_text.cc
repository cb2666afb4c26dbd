// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/file/raw_text.h"

#include <algorithm>
#include <cstdint>

#include "config/file/unquoted.h"

namespace ztcp::config {
namespace {

bool beyond_ascii(char c) { return (static_cast<unsigned char>(c) & 0x80) != 0; }

// True for the later bytes of a UTF-8 character; columns count characters.
bool continues_character(char c) { return (static_cast<unsigned char>(c) & 0xc0) == 0x80; }

std::string_view without_byte_order_mark(std::string_view text) {
  constexpr std::string_view kMark = "\xef\xbb\xbf";
  if (text.starts_with(kMark)) text.remove_prefix(kMark.size());
  return text;
}

// The index of the first dot outside strings that makes a key too deep.
std::optional<std::size_t> dot_too_many(std::string_view line) {
  std::size_t dots = 0;
  std::optional<std::size_t> found;
  scan_unquoted(line, [&](std::size_t i, char c) {
    if (c == '.' && ++dots > kMostDots) found = i;
    return !found;
  });
  return found;
}

}  // namespace

std::string in_ascii(std::string_view text) {
  text = without_byte_order_mark(text);
  std::string ascii;
  ascii.reserve(text.size());
  for (const char c : text) {
    if (!beyond_ascii(c))
      ascii += c;
    else if (!continues_character(c))
      ascii += '?';
  }
  return ascii;
}

std::set<Position> places_beyond_ascii(std::string_view text) {
  std::set<Position> places;
  Position place;
  for (const char c : without_byte_order_mark(text)) {
    if (beyond_ascii(c) && !continues_character(c)) places.insert(place);
    if (c == '\n')
      place = {place.line + 1, 1};
    else if (!continues_character(c))
      ++place.column;
  }
  return places;
}

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
