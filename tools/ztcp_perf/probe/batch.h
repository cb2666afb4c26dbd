// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Sizes of the batches of a measurement that has a time budget. Pure.
#pragma once

#include <cstdint>

namespace ztcp::perf::probe {

// A batch is at most this many times larger than the one before: a first batch that was fast by
// chance can't make the next one overshoot the budget by more.
inline constexpr std::uint64_t kLargestGrowth = 4;

// The amount (messages or bytes) of the next batch, after one of `amount` that took `took_s`, with
// `left_s` of the budget left. 0: the measurement is complete.
std::uint64_t next_batch(std::uint64_t amount, double took_s, double left_s);

}  // namespace ztcp::perf::probe
