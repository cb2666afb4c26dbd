// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/file/key_text.h"

#include <algorithm>

#include <fmt/format.h>

namespace ztcp::config {

bool is_name(std::string_view text, std::size_t most) {
  return !text.empty() && text.size() <= most && std::all_of(text.begin(), text.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_';
  });
}

std::string full_name(std::string_view section, std::string_view key) {
  return section.empty() ? std::string(key) : fmt::format("{}.{}", section, key);
}

std::string unit_of(const Key& key) {
  return key.unit.empty() ? std::string() : fmt::format(" {}", key.unit);
}

std::string alternatives(std::string_view words) {
  std::string text = "\"";
  for (const char c : words) text += c == '|' ? std::string("\", \"") : std::string(1, c);
  return text + "\"";
}

std::string wanted(const Key& key) {
  switch (key.type) {
    case Type::kInteger:
      return fmt::format("an integer, {}..{}{}{}", key.min, key.max, unit_of(key),
                         key.choices.empty() ? "" : ", or " + alternatives(key.choices));
    case Type::kIntegers:
      return fmt::format("a list of integers, {}..{} each", key.min, key.max);
    case Type::kBoolean:
      return "true or false";
    case Type::kChoice:
      return "one of " + alternatives(key.choices);
    case Type::kString:
      break;
  }
  return key.form.empty() ? "a string" : fmt::format("a string: {}", key.form);
}

std::string mend_value(const Key& key) {
  const std::string name = full_name(key.section, key.name);
  if (key.default_text.empty()) return fmt::format("write {} for {}", wanted(key), name);
  return fmt::format("write {}, or remove the line to get {}", wanted(key), key.default_text);
}

}  // namespace ztcp::config
