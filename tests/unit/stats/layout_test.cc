// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/stats/layout.h"

#include <cstring>
#include <memory>
#include <string>

#include <gtest/gtest.h>

namespace ztcp::stats {
namespace {

TEST(LayoutTest, SequenceIsEvenAfterAWriteAndGrows) {
  auto entry = std::make_unique<Entry<LatencyRecord>>();
  LatencyRecord record{};
  record.device = 7;
  entry->write(record);
  EXPECT_EQ(entry->sequence, 2U);
  entry->write(record);
  EXPECT_EQ(entry->sequence, 4U);
  LatencyRecord copy;
  std::memcpy(&copy, entry->words.data(), sizeof(copy));
  EXPECT_EQ(copy.device, 7U);
}

TEST(LayoutTest, WriteAfterAnInterruptedOneEndsEven) {
  auto entry = std::make_unique<Entry<LatencyRecord>>();
  entry->sequence = 5;
  entry->write({});
  EXPECT_EQ(entry->sequence, 6U);
}

TEST(LayoutTest, TextsAreCutAndTerminated) {
  Text<4> text;
  text.set("abcdef");
  EXPECT_STREQ(text.chars.data(), "abc");
  text.set("x");
  EXPECT_EQ(std::string(text.chars.data(), 4), std::string("x\0\0\0", 4));
}

TEST(LayoutTest, LatenciesAreCountedInTheirClass) {
  auto entry = std::make_unique<LatencyEntry>();
  entry->add(1, 1'000'000);
  EXPECT_EQ(total(entry->by_class[1]), 1U);
  EXPECT_EQ(total(entry->by_class[0]), 0U);
}

}  // namespace
}  // namespace ztcp::stats
