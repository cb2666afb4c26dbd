// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/machine/text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace ztcp::config {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

TEST(Text, LinesMayBeEmpty) {
  EXPECT_THAT(lines_of("a\n\n b \nc"), ElementsAre("a", "", " b ", "c"));
  EXPECT_THAT(lines_of("a\n"), ElementsAre("a"));
  EXPECT_THAT(lines_of(""), IsEmpty());
}

TEST(Text, WordsAndPartsAreNeverEmpty) {
  EXPECT_THAT(words_of("  a\tbc  d\n"), ElementsAre("a", "bc", "d"));
  EXPECT_THAT(words_of(" \n"), IsEmpty());
  EXPECT_THAT(split(",a,,b", ','), ElementsAre("a", "b"));
  EXPECT_EQ(trimmed(" \ta b\n"), "a b");
}

TEST(Text, AListMatchesWholeWords) {
  EXPECT_TRUE(lists_word("cpu,cpuacct", "cpu"));
  EXPECT_FALSE(lists_word("cpuacct", "cpu"));
}

TEST(Text, ParsesNumbers) {
  EXPECT_EQ(parse_number("18446744073709551615"), UINT64_MAX);
  EXPECT_EQ(parse_number("18446744073709551616"), std::nullopt);
  EXPECT_EQ(parse_number("12k"), std::nullopt);
  EXPECT_EQ(parse_number(""), std::nullopt);
  EXPECT_EQ(leading_number("12k"), 12U);
  EXPECT_EQ(leading_number("max"), 0U);
}

TEST(Text, FindsFoldersOfPaths) {
  EXPECT_EQ(folder_of("/a/b"), "/a");
  EXPECT_EQ(folder_of("/a"), "/");
}

}  // namespace
}  // namespace ztcp::config
