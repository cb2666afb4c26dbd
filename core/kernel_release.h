// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The Linux version, from the release of uname(2): "5.15.0-105-generic".
#pragma once

#include <charconv>
#include <compare>
#include <string_view>

namespace ztcp {

struct KernelVersion {
  unsigned major = 0;
  unsigned minor = 0;
  friend constexpr auto operator<=>(const KernelVersion&, const KernelVersion&) = default;
};

// From here on a fork copies pinned pages for the child at once, hugetlbfs's as well
// (transport/link/dma_map.h).
inline constexpr KernelVersion kForksCopyPinnedPages{5, 13};

// 0.0, older than any, where the text does not begin with two numbers.
inline KernelVersion kernel_version(std::string_view release) {
  KernelVersion version;
  const char* const end = release.data() + release.size();
  const auto major = std::from_chars(release.data(), end, version.major);
  if (major.ec != std::errc{} || major.ptr == end || *major.ptr != '.') return {};
  const auto minor = std::from_chars(major.ptr + 1, end, version.minor);
  return minor.ec == std::errc{} ? version : KernelVersion{};
}

}  // namespace ztcp
