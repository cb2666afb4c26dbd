// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/machine/cpu_list.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ztcp::config {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(CpuList, ParsesNumbersAndRanges) {
  EXPECT_THAT(parse_cpu_list("0-3,8,10-11\n"), ElementsAre(0, 1, 2, 3, 8, 10, 11));
  EXPECT_THAT(parse_cpu_list("7"), ElementsAre(7));
}

TEST(CpuList, StopsAtTheFirstMalformedEntry) {
  for (const char* text : {"", "\n", "x", "-3", "1-", "3-1"})
    EXPECT_THAT(parse_cpu_list(text), IsEmpty()) << text;
  EXPECT_THAT(parse_cpu_list("1,x,3"), ElementsAre(1));
}

TEST(CpuList, LeavesOutCpusBeyondAMasksSize) {
  EXPECT_EQ(parse_cpu_list("0-4294967295").size(), 1024U);
}

}  // namespace
}  // namespace ztcp::config
