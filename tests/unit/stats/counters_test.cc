// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/stats/counters.h"

#include <set>
#include <string>

#include <gtest/gtest.h>

namespace ztcp::stats {
namespace {

TEST(CountersTest, NamesAreUniqueAndInLowerCase) {
  std::set<std::string> names;
  for (const CounterText& text : kCounterTexts) {
    const std::string name = text.name;
    EXPECT_TRUE(names.insert(name).second) << name << " stands twice";
    EXPECT_EQ(name.find_first_not_of("abcdefghijklmnopqrstuvwxyz_"), std::string::npos) << name;
  }
}

TEST(CountersTest, MeaningsAreSentences) {
  for (const CounterText& text : kCounterTexts) {
    const std::string meaning = text.meaning;
    EXPECT_EQ(meaning.back(), '.') << text.name;
    EXPECT_TRUE(meaning.front() >= 'A' && meaning.front() <= 'Z') << text.name;
  }
}

TEST(CountersTest, ValuesAreStoredByCounter) {
  CounterValues values;
  values[Counter::kRxFrames] = 7;
  EXPECT_EQ(values.all()[static_cast<std::size_t>(Counter::kRxFrames)], 7U);
  EXPECT_EQ(values[Counter::kTxFrames], 0U);
}

}  // namespace
}  // namespace ztcp::stats
