// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "config/file/load.h"
#include "config/file/raw_text.h"

namespace ztcp::config {
namespace {

std::string dots(std::size_t count) {
  std::string key = "a";
  for (std::size_t i = 0; i < count; ++i) key += ".a";
  return key;
}

TEST(KeyDepth, KeysWithTooManyPartsAreFound) {
  EXPECT_EQ(place_too_deep("schema = 1\n" + dots(kMostDots) + " = 1\n"), std::nullopt);
  EXPECT_EQ(place_too_deep("schema = 1\n" + dots(kMostDots + 1) + " = 1\n"),
            (Position{2, 2 * kMostDots + 2}));
  EXPECT_NE(place_too_deep("[" + dots(100) + "]"), std::nullopt);
  EXPECT_NE(place_too_deep("x = [{" + dots(10) + " = 1}, {" + dots(10) + " = 1}]"), std::nullopt);
}

TEST(KeyDepth, DotsInStringsAndCommentsMakeNoTables) {
  const std::string many = dots(100);
  EXPECT_EQ(place_too_deep("name = \"" + many + "\"\n"), std::nullopt);
  EXPECT_EQ(place_too_deep("name = '" + many + "'\n"), std::nullopt);
  EXPECT_EQ(place_too_deep("name = \"\\\"" + many + "\"\n"), std::nullopt);
  EXPECT_EQ(place_too_deep("# " + many + "\n"), std::nullopt);
  EXPECT_NE(place_too_deep("\"a.b\"." + many + " = 1\n"), std::nullopt);
}

// It overflowed the process's stack.
TEST(KeyDepth, AHugeKeyIsRefusedWithItsPlace) {
  const LoadResult result = parse(dots(400'000) + " = 1\n", "ztcp.conf");
  ASSERT_EQ(result.problems.size(), 1U);
  EXPECT_THAT(to_string(result.problems[0]),
              testing::StartsWith("ztcp.conf:1:34: not TOML: more than 16 dots"));
}

}  // namespace
}  // namespace ztcp::config
