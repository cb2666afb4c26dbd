// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/probe/batch.h"

#include <gtest/gtest.h>

namespace ztcp::perf::probe {
namespace {

TEST(ProbeBatch, GrowsAtMostFourfold) {
  EXPECT_EQ(next_batch(1, 1e-9, 10), 4U);
  EXPECT_EQ(next_batch(100, 0, 10), 400U) << "a clock that did not move";
}

TEST(ProbeBatch, FitsTheTimeLeft) {
  EXPECT_EQ(next_batch(100, 1, 2.5), 250U);
  EXPECT_EQ(next_batch(100, 1, 0.5), 50U);
}

TEST(ProbeBatch, EndsWhenTheTimeIsSpentOrTooLittleIsLeft) {
  EXPECT_EQ(next_batch(100, 1, 0), 0U);
  EXPECT_EQ(next_batch(100, 1, -1), 0U);
  EXPECT_EQ(next_batch(100, 1, 0.49), 0U);
  EXPECT_EQ(next_batch(1, 1, 0.9), 0U);
}

TEST(ProbeBatch, ALinkThatSlowsDownOvershootsByOneBatch) {
  // Every batch takes eight times as long per byte as its predecessor.
  double spent_s = 0;
  double per_byte_s = 1e-6;
  double took_s = 0;
  for (std::uint64_t amount = 1; amount > 0; amount = next_batch(amount, took_s, 1 - spent_s)) {
    took_s = static_cast<double>(amount) * per_byte_s;
    spent_s += took_s;
    per_byte_s *= 8;
  }
  EXPECT_LT(spent_s, 1 + 1 * 8);
}

}  // namespace
}  // namespace ztcp::perf::probe
