// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Test data: every element depends on its sender, receiver, index and iteration, so that lost,
// late, duplicated and misplaced bytes are detected. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace ztcp::perf {

// Small whole numbers: sums of up to 65536 of them are exact in a float, in any order.
void fill_summands(std::span<float> out, int rank, std::uint32_t iteration);
// Number of elements that are not the sum over `ranks` of their fill_summands() values, or are
// wrong by more than this share of it. got[0] is the sum of the elements `first`.
std::uint64_t count_wrong_sums(std::span<const float> got, int ranks, std::uint32_t iteration,
                               float tolerance = 0, std::size_t first = 0);

// A block sent by `from` to `to`.
void fill_block(std::span<std::uint32_t> out, int from, int to, std::uint32_t iteration);
std::uint64_t count_wrong_block(std::span<const std::uint32_t> got, int from, int to,
                                std::uint32_t iteration);

// Content of receive buffers before an iteration: never produced by a pattern.
void poison(std::span<std::byte> out);

}  // namespace ztcp::perf
