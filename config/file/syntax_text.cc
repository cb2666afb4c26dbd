// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/file/syntax_text.h"

#include <algorithm>
#include <array>
#include <cctype>

#include <fmt/format.h>

#include "config/file/key_text.h"
#include "config/file/unquoted.h"
#include "config/schema.h"

namespace ztcp::config {
namespace {

constexpr std::size_t kMostShown = 40;

std::string_view line_at(std::string_view text, std::uint32_t number) {
  for (; number > 1 && !text.empty(); --number)
    text.remove_prefix(std::min(text.find('\n'), text.size() - 1) + 1);
  std::string_view line = text.substr(0, text.find('\n'));
  if (line.ends_with('\r')) line.remove_suffix(1);
  return line;
}

std::string_view trimmed(std::string_view text) {
  while (text.starts_with(' ') || text.starts_with('\t')) text.remove_prefix(1);
  while (text.ends_with(' ') || text.ends_with('\t')) text.remove_suffix(1);
  return text;
}

// The index of a quote that the line does not close.
std::optional<std::size_t> open_quote(std::string_view line) {
  if (line.find("\"\"\"") != line.npos || line.find("'''") != line.npos) return std::nullopt;
  return scan_unquoted(line, [](std::size_t, char) { return true; });
}

std::string in_small_letters(std::string_view text) {
  std::string small(text);
  std::transform(small.begin(), small.end(), small.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  return small;
}

const Key* key_called(std::string_view name) {
  const auto all = keys();
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Key& key) { return key.name == name; });
  return found == all.end() ? nullptr : &*found;
}

// "true" or "false" for "True", "yes" and the like; empty: neither.
std::string_view meant_boolean(std::string_view value) {
  constexpr std::array kTrue{"true", "yes", "on"};
  constexpr std::array kFalse{"false", "no", "off"};
  const std::string small = in_small_letters(value);
  if (std::find(kTrue.begin(), kTrue.end(), small) != kTrue.end()) return "true";
  return std::find(kFalse.begin(), kFalse.end(), small) != kFalse.end() ? "false" : "";
}

// Words, paths and addresses need quotes in TOML.
bool needs_quotes(std::string_view value) {
  if (value.empty() || value.find_first_of("\"'[]{}=,") != value.npos) return false;
  const auto first = static_cast<unsigned char>(value.front());
  return std::isalpha(first) != 0 || first == '/' ||
         (std::isdigit(first) != 0 &&
          (std::count(value.begin(), value.end(), '.') > 1 || value.find(':') != value.npos));
}

std::optional<Finding> explain_value(std::string_view line, Position place) {
  const auto equals = line.find('=');
  if (equals == line.npos) return std::nullopt;
  const std::string_view name = trimmed(line.substr(0, equals));
  const std::string_view rest = line.substr(equals + 1);
  const std::string_view value = trimmed(rest.substr(0, rest.find('#')));
  const Key* const key = key_called(name);
  place.column =
      static_cast<std::uint32_t>(std::min(line.size(), line.find_first_not_of(" \t", equals + 1))) +
      1;
  if (value.empty())
    return Finding{place, fmt::format("{} has no value", name.substr(0, kMostShown)),
                   "write one behind the =, or remove the line"};
  if (key != nullptr && key->type == Type::kBoolean) {
    const std::string_view meant = meant_boolean(value);
    if (meant.empty()) return std::nullopt;
    return Finding{place, fmt::format("{} = {}: wanted true or false", name, value),
                   fmt::format("write {} = {}", name, meant)};
  }
  if (key == nullptr || !needs_quotes(value)) return std::nullopt;
  if (key->type == Type::kInteger && value != key->choices)
    return Finding{
        place, fmt::format("{} = {}, wanted {}", name, value.substr(0, kMostShown), wanted(*key)),
        mend_value(*key)};
  // The cluster's key must not appear in logs.
  if (name == "cluster_key" || value.size() > kMostShown)
    return Finding{place, fmt::format("the value of {} has no quotes", name),
                   fmt::format("write it between quotes: {} = \"...\"", name)};
  return Finding{place, fmt::format("the value of {} has no quotes", name),
                 fmt::format("write {} = \"{}\"", name, value)};
}

}  // namespace

std::optional<Finding> why_not_text(std::string_view text) {
  Position place;
  for (const char c : text) {
    const auto byte = static_cast<unsigned char>(c);
    if (byte == 0 || (byte < 0x20 && c != '\n' && c != '\t' && c != '\r'))
      return Finding{place, "this is not a text file", "name the config file"};
    if (c == '\n')
      place = {place.line + 1, 1};
    else
      ++place.column;
  }
  return std::nullopt;
}

std::optional<Finding> explain_syntax(std::string_view text, const Position& place) {
  // The parser may have reached the line after the one with the error.
  for (const std::uint32_t number : {place.line, place.line - 1}) {
    if (number == 0) continue;
    const std::string_view line = line_at(text, number);
    // A quote after the place where the parser stopped is not the cause.
    if (const auto at = open_quote(line); at && (number < place.line || *at < place.column))
      return Finding{{number, static_cast<std::uint32_t>(*at) + 1},
                     fmt::format("the text that begins here has no closing {}", line[*at]),
                     "add it where the text ends"};
  }
  return explain_value(line_at(text, place.line), place);
}

}  // namespace ztcp::config
