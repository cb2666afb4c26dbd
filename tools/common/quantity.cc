// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/common/quantity.h"

#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <utility>

#include <fmt/format.h>

namespace ztcp::tools {
namespace {

struct Number {
  double value = 0;
  std::string unit;  // Lower case, without surrounding blanks.
};

std::optional<Number> split(std::string_view text) {
  Number number;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), number.value,
                                            std::chars_format::fixed);
  if (error != std::errc{} || number.value < 0 || !std::isfinite(number.value)) return std::nullopt;
  for (const char* c = end; c != text.data() + text.size(); ++c) {
    if (*c == ' ' && number.unit.empty()) continue;
    number.unit.push_back(static_cast<char>(std::tolower(static_cast<unsigned char>(*c))));
  }
  return number;
}

template <std::size_t N>
std::optional<double> scaled(std::string_view text,
                             const std::array<std::pair<std::string_view, double>, N>& units) {
  const auto number = split(text);
  if (!number) return std::nullopt;
  for (const auto& [name, factor] : units)
    if (number->unit == name) return number->value * factor;
  return std::nullopt;
}

std::optional<std::uint64_t> whole(std::optional<double> value) {
  if (!value || *value > 9e18) return std::nullopt;
  return static_cast<std::uint64_t>(std::llround(*value));
}

using Unit = std::pair<std::string_view, double>;
constexpr double kKi = 1024;

}  // namespace

std::optional<std::uint64_t> parse_bytes(std::string_view text) {
  static constexpr std::array kUnits = {Unit{"", 1},
                                        Unit{"b", 1},
                                        Unit{"k", kKi},
                                        Unit{"kib", kKi},
                                        Unit{"m", kKi * kKi},
                                        Unit{"mib", kKi * kKi},
                                        Unit{"g", kKi * kKi * kKi},
                                        Unit{"gib", kKi * kKi * kKi}};
  return whole(scaled(text, kUnits));
}

std::optional<double> parse_probability(std::string_view text) {
  static constexpr std::array kUnits = {Unit{"", 1}, Unit{"%", 0.01}};
  const auto value = scaled(text, kUnits);
  if (!value || *value > 1) return std::nullopt;
  return value;
}

std::optional<Duration> parse_duration(std::string_view text) {
  if (text == "0") return Duration::zero();
  static constexpr std::array kUnits = {Unit{"ns", 1}, Unit{"us", 1e3}, Unit{"ms", 1e6},
                                        Unit{"s", 1e9}};
  const auto ns = whole(scaled(text, kUnits));
  if (!ns) return std::nullopt;
  return Duration(*ns);
}

std::optional<std::uint64_t> parse_bit_rate(std::string_view text) {
  static constexpr std::array kUnits = {Unit{"bit", 1}, Unit{"kbit", 1e3}, Unit{"mbit", 1e6},
                                        Unit{"gbit", 1e9}};
  return whole(scaled(text, kUnits));
}

std::string format_bytes(std::uint64_t bytes) {
  static constexpr std::array<const char*, 4> kNames = {"B", "KiB", "MiB", "GiB"};
  std::size_t i = 0;
  while (i + 1 < kNames.size() && bytes >= 1024 && bytes % 1024 == 0) {
    bytes /= 1024;
    ++i;
  }
  return fmt::format("{} {}", bytes, kNames[i]);
}

}  // namespace ztcp::tools
