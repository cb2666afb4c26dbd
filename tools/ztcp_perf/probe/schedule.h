// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Order of the measurements: rounds of pairs in which no host occurs twice, so that all pairs of a
// round are measured at the same time and n hosts need n - 1 rounds (the circle method). Pure.
#pragma once

#include <cstddef>
#include <vector>

namespace ztcp::perf::probe {

struct Pair {
  std::size_t a = 0;  // Smaller than b.
  std::size_t b = 0;
  friend bool operator==(const Pair&, const Pair&) = default;
};

// Each two of `hosts` hosts in exactly one round. An odd number needs one round more, and in each
// round another host rests.
std::vector<std::vector<Pair>> rounds_of(std::size_t hosts);

}  // namespace ztcp::perf::probe
