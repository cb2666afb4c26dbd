// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <gtest/gtest.h>

#include "config/file/raw_text.h"

namespace ztcp::config {
namespace {

TEST(Ascii, EachCharacterBeyondAsciiBecomesOneMark) {
  EXPECT_EQ(in_ascii("plain\n"), "plain\n");
  EXPECT_EQ(in_ascii("r\u00e9seau \u7f51\u7edc"), "r?seau ??");
  EXPECT_EQ(in_ascii("\xef\xbb\xbfx = 1"), "x = 1") << "a byte order mark is no character";
}

TEST(Ascii, PlacesAreCountedInCharacters) {
  const auto places = places_beyond_ascii("a\u00e9b\u00e9\nc\u7f51");
  ASSERT_EQ(places.size(), 3U);
  auto place = places.begin();
  EXPECT_EQ(place->line, 1U);
  EXPECT_EQ(place->column, 2U);
  ++place;
  EXPECT_EQ(place->column, 4U);
  ++place;
  EXPECT_EQ(place->line, 2U);
  EXPECT_EQ(place->column, 2U);
  EXPECT_TRUE(places_beyond_ascii("\xef\xbb\xbfx = 1").empty());
}

}  // namespace
}  // namespace ztcp::config
