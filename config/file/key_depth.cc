// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/file/key_depth.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "config/file/unquoted.h"

namespace ztcp::config {
namespace {

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
