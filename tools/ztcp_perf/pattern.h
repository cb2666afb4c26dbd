// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Test data: every element depends on who sends it, to whom, its index and the iteration, so that
// a byte that is lost, late, doubled or misplaced shows. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ztcp::perf {

// Small whole numbers: sums of up to 65536 of them are exact in a float, in any order.
void fill_summands(std::span<float> out, int rank, std::uint32_t iteration);
// How many elements are not the sum over `ranks` of what fill_summands() gave each.
std::uint64_t count_wrong_sums(std::span<const float> got, int ranks, std::uint32_t iteration);

// A block that `from` sends `to`.
void fill_block(std::span<std::uint32_t> out, int from, int to, std::uint32_t iteration);
std::uint64_t count_wrong_block(std::span<const std::uint32_t> got, int from, int to,
                                std::uint32_t iteration);

// What receive buffers hold before an iteration: no pattern makes it.
void poison(std::span<std::byte> out);

}  // namespace ztcp::perf
