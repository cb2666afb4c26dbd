// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Bytes as hex digits, for binary data in JSON.
#pragma once

#include <string>
#include <string_view>

namespace ztcp::setup {

inline std::string to_hex(std::string_view bytes) {
  constexpr const char* kDigits = "0123456789abcdef";
  std::string hex;
  hex.reserve(bytes.size() * 2);
  for (const char byte : bytes) {
    hex.push_back(kDigits[static_cast<unsigned char>(byte) >> 4]);
    hex.push_back(kDigits[static_cast<unsigned char>(byte) & 15]);
  }
  return hex;
}

// Stops at the first malformed pair.
inline std::string from_hex(std::string_view hex) {
  const auto digit = [](char c) {
    return c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
  };
  std::string bytes;
  for (; hex.size() >= 2; hex.remove_prefix(2)) {
    const int high = digit(hex[0]);
    const int low = digit(hex[1]);
    if (high < 0 || low < 0) break;
    bytes.push_back(static_cast<char>(high * 16 + low));
  }
  return bytes;
}

}  // namespace ztcp::setup
