// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/view/table.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ztcp::stat {
namespace {

using testing::ElementsAre;

Table small_table() {
  Table table({{"NAME", false, 6}, {"RATE", true}});
  table.add({{"a"}, {"1 b/s"}});
  table.add({{"long name"}, {"12 b/s", Mark::kBad}});
  return table;
}

TEST(Table, AlignsAndCutsColumns) {
  EXPECT_THAT(small_table().lines(0, 10, false),
              ElementsAre("NAME      RATE", "a        1 b/s", "long n  12 b/s"));
}

TEST(Table, NoLineIsWiderThanTheTerminal) {
  for (std::size_t width = 1; width < 20; ++width)
    for (const std::string& line : small_table().lines(width, 10, false))
      EXPECT_LE(columns_of(line), width);
}

TEST(Table, ShowsTheFirstRows) { EXPECT_EQ(small_table().lines(0, 1, false).size(), 2u); }

TEST(Table, ColourSurroundsMarkedCells) {
  const auto lines = small_table().lines(0, 10, true);
  EXPECT_EQ(lines[0], "\033[1mNAME  \033[0m  \033[1m  RATE\033[0m");
  EXPECT_EQ(lines[2], "long n  \033[1;31m12 b/s\033[0m");
}

TEST(Table, CharactersOfSeveralBytesTakeAColumn) {
  EXPECT_EQ(columns_of("▁█x"), 3u);
  EXPECT_EQ(cut("▁█x", 2), "▁█");
  EXPECT_EQ(cut("ab", 5), "ab");
}

}  // namespace
}  // namespace ztcp::stat
