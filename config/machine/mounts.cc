// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/machine/mounts.h"

#include <cstdint>
#include <optional>

#include "config/machine/readings.h"
#include "config/machine/text.h"

namespace ztcp::config {
namespace {

bool is_octal(std::string_view text) {
  return text.size() == 3 && text.find_first_not_of("01234567") == std::string_view::npos;
}

// Decodes the kernel's octal escapes of blanks, line ends and backslashes, "\040".
std::string unescaped(std::string_view word) {
  std::string text;
  for (std::size_t i = 0; i < word.size(); ++i) {
    if (word[i] != '\\' || !is_octal(word.substr(i + 1, 3))) {
      text += word[i];
      continue;
    }
    text +=
        static_cast<char>((word[i + 1] - '0') * 64 + (word[i + 2] - '0') * 8 + word[i + 3] - '0');
    i += 3;
  }
  return text;
}

// The bytes of "pagesize=2M".
std::optional<std::uint64_t> page_bytes(std::string_view option) {
  constexpr std::string_view kPageSize = "pagesize=";
  constexpr std::string_view kUnits = "KMGT";
  if (!option.starts_with(kPageSize)) return std::nullopt;
  option.remove_prefix(kPageSize.size());
  const auto unit = option.empty() ? std::string_view::npos : kUnits.find(option.back());
  if (unit == std::string_view::npos) return parse_number(option);
  const auto number = parse_number(option.substr(0, option.size() - 1));
  return number ? std::optional(*number << (10 * (unit + 1))) : std::nullopt;
}

}  // namespace

bool Mount::has(std::string_view wanted) const {
  const auto bytes = page_bytes(wanted);
  for (const std::string_view one : split(options, ','))
    if (one == wanted || (bytes && page_bytes(one) == bytes)) return true;
  return false;
}

std::string_view Mount::option(std::string_view name) const {
  for (const std::string_view one : split(options, ','))
    if (one.starts_with(name) && one.substr(name.size()).starts_with('='))
      return one.substr(name.size() + 1);
  return {};
}

// Lines of proc(5): "id parent major:minor root folder options [optional...] - type source
// options".
std::vector<Mount> mounts_of(Machine& machine) {
  constexpr std::size_t kFolder = 4;
  const std::string text = text_of(machine, "/proc/self/mountinfo");
  std::vector<Mount> mounts;
  for (const std::string_view line : lines_of(text)) {
    const auto dash = line.find(" - ");
    if (dash == std::string_view::npos) continue;
    const auto head = words_of(line.substr(0, dash));
    const auto tail = words_of(line.substr(dash + 3));
    if (head.size() <= kFolder || tail.size() < 2) continue;
    Mount& mount = mounts.emplace_back();
    mount.folder = unescaped(head[kFolder]);
    mount.type = tail[0];
    mount.source = unescaped(tail[1]);
    if (tail.size() > 2) mount.options = tail[2];
  }
  return mounts;
}

}  // namespace ztcp::config
