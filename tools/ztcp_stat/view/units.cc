// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/view/units.h"

#include <algorithm>
#include <array>
#include <cmath>

#include <fmt/format.h>

namespace ztcp::stat {
namespace {

// Two digits, or all digits before the point: "1.5", "12", "123".
std::string short_number(double value) {
  return fmt::format("{:.{}f}", value, value < 9.95 && value != std::floor(value) ? 1 : 0);
}

}  // namespace

std::string time_text(std::uint64_t nanoseconds) {
  const auto ns = static_cast<double>(nanoseconds);
  if (ns < 1e3) return fmt::format("{} ns", nanoseconds);
  if (ns < 999.5e3) return short_number(ns / 1e3) + " us";
  if (ns < 999.5e6) return short_number(ns / 1e6) + " ms";
  return seconds_text(ns / 1e9);
}

std::string seconds_text(double seconds) {
  if (seconds < 0.9995) return time_text(static_cast<std::uint64_t>(std::max(seconds, 0.0) * 1e9));
  if (std::abs(seconds - std::round(seconds)) < 0.05) seconds = std::round(seconds);
  if (seconds < 120) return short_number(seconds) + " s";
  if (seconds < 7200) return short_number(seconds / 60) + " min";
  if (seconds < 172'800) return short_number(seconds / 3600) + " h";
  return short_number(seconds / 86'400) + " days";
}

std::string bytes_text(std::uint64_t bytes) {
  constexpr std::array kUnits = {"kB", "MB", "GB", "TB", "PB", "EB"};
  if (bytes < 1000) return fmt::format("{} B", bytes);
  double value = static_cast<double>(bytes) / 1e3;
  std::size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < kUnits.size(); ++unit) value /= 1e3;
  return fmt::format("{} {}", short_number(value), kUnits[unit]);
}

std::string rate_text(double bytes_per_second) {
  constexpr std::array kUnits = {"b/s", "kb/s", "Mb/s", "Gb/s", "Tb/s"};
  double value = bytes_per_second * 8;
  if (value < 1) return "0";
  std::size_t unit = 0;
  for (; value >= 999.5 && unit + 1 < kUnits.size(); ++unit) value /= 1e3;
  return fmt::format("{:.{}f} {}", value, value < 99.95 && unit > 0 ? 1 : 0, kUnits[unit]);
}

std::string share_text(double share) {
  const double percent = share * 100;
  if (percent > 0 && percent < 0.005) return "<0.01 %";
  return fmt::format("{:.{}f} %", percent, percent == 0 || percent >= 9.95 ? 0 : 2);
}

std::string count_text(std::uint64_t count) {
  if (count < 10'000) return std::to_string(count);
  const auto value = static_cast<double>(count);
  if (value < 999.5e3) return fmt::format("{:.0f}k", value / 1e3);
  if (value < 999.5e6) return short_number(value / 1e6) + "M";
  return short_number(value / 1e9) + "G";
}

std::string sparkline(std::span<const double> values, bool is_unicode) {
  constexpr std::array kBlocks = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  constexpr std::array kAscii = {" ", ".", ":", "-", "=", "+", "*", "#", "#"};
  const double top = values.empty() ? 0 : *std::max_element(values.begin(), values.end());
  std::string line;
  for (const double value : values) {
    const double height = top > 0 ? std::ceil(std::max(value, 0.0) / top * 8) : 0;
    const auto index = static_cast<std::size_t>(std::clamp(height, 0.0, 8.0));
    line += is_unicode ? kBlocks[index] : kAscii[index];
  }
  return line;
}

}  // namespace ztcp::stat
