// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A host's name of bounded length, as peers tell it each other: printable ASCII, for logs and
// metrics.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <string_view>

namespace ztcp {

struct HostName {
  static constexpr std::size_t kBytes = 64;  // Linux's limit, with the zero.
  // Zeros behind the name, at least one.
  std::array<char, kBytes> chars{};

  // Up to the first zero. Other characters than printable ASCII become question marks; longer names
  // are cut.
  static HostName of(std::string_view text) {
    HostName name;
    const std::string_view shown = text.substr(0, text.find('\0')).substr(0, kBytes - 1);
    std::transform(shown.begin(), shown.end(), name.chars.begin(),
                   [](char c) { return c > ' ' && c <= '~' ? c : '?'; });
    return name;
  }
  std::string_view view() const { return chars.data(); }
  bool is_empty() const { return chars.front() == '\0'; }
  friend bool operator==(const HostName&, const HostName&) = default;
};

// This host's; empty: the kernel does not tell it.
HostName own_host_name();

}  // namespace ztcp
