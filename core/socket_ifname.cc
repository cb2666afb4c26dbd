// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/socket_ifname.h"

#include <algorithm>
#include <cstddef>

namespace ztcp {
namespace {

constexpr std::size_t kMostNames = 16;  // NCCL's MAX_IFS.

}  // namespace

bool fits_socket_ifname(std::string_view value, std::string_view interface) {
  const bool excludes = value.starts_with('^');
  if (excludes) value.remove_prefix(1);
  const bool exact = value.starts_with('=');
  if (exact) value.remove_prefix(1);
  std::size_t names = 0;
  bool listed = false;
  while (!value.empty() && names < kMostNames) {
    const std::size_t comma = std::min(value.find(','), value.size());
    const std::string_view name = value.substr(0, std::min(value.find(':'), comma));
    value.remove_prefix(std::min(comma + 1, value.size()));
    if (name.empty()) continue;
    ++names;
    listed |= exact ? interface == name : interface.starts_with(name);
  }
  return (listed || names == 0) != excludes;
}

}  // namespace ztcp
