// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/file/ascii.h"

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

}  // namespace ztcp::config
