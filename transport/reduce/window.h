// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// All-gather and reduce-scatter: each host has a part, all of the same length. The parts of all
// hosts, in the order of the hosts, are one vector, and a call moves a window of it. The window may
// begin and end anywhere, so it has all of a host's part, some of it, or nothing.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "transport/reduce/element.h"

namespace ztcp::reduce {

enum class Collective : std::uint8_t { kAllReduce, kAllGather, kReduceScatter };

struct Window {
  std::size_t part = 0;    // Elements of a host's part.
  std::size_t offset = 0;  // Begin of the window in the vector of all parts.
};

// The elements of `range` that belong to the part of `host`; both are counted from the begin of the
// window. Without any, an empty range inside or at an end of `range`.
constexpr Range part_in_window(const Window& window, Range range, std::size_t host) {
  const std::size_t first = window.offset + range.begin;
  const std::size_t end = first + range.count;
  const std::size_t begin = std::clamp(host * window.part, first, end);
  const std::size_t behind = std::clamp((host + 1) * window.part, first, end);
  return {begin - window.offset, behind - begin};
}

}  // namespace ztcp::reduce
