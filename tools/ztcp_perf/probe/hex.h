// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Bytes as hexadecimal digits in a line. Pure.
#pragma once

#include <array>
#include <charconv>
#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace ztcp::perf::probe {

inline std::string to_hex(std::span<const std::byte> bytes) {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::string text;
  for (const std::byte one : bytes) {
    const auto value = static_cast<unsigned>(one);
    text += kDigits[value >> 4U];
    text += kDigits[value & 15U];
  }
  return text;
}

// False: not exactly as many bytes as `out` has.
template <std::size_t N>
bool from_hex(std::string_view text, std::array<std::byte, N>& out) {
  if (text.size() != 2 * N) return false;
  for (std::size_t i = 0; i < N; ++i) {
    unsigned value = 0;
    const char* const begin = text.data() + 2 * i;
    const auto [end, error] = std::from_chars(begin, begin + 2, value, 16);
    if (error != std::errc{} || end != begin + 2) return false;
    out[i] = static_cast<std::byte>(value);
  }
  return true;
}

}  // namespace ztcp::perf::probe
