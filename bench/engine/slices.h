// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// A working set is moved in slices.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

namespace ztcp::bench {

inline constexpr std::size_t kSliceBytes = 4U << 20;

// `values` is not empty; its order changes.
inline double median(std::vector<double>& values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>(values.size() / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

}  // namespace ztcp::bench
