// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "config/file/key_text.h"

#include <gtest/gtest.h>

namespace ztcp::config {
namespace {

TEST(KeyText, ANameHasLettersDigitsAndFewSigns) {
  EXPECT_TRUE(is_name("rack-7.prod_1", 63));
  for (const char* text : {"", "a b", "a/b", "a\nb", "\u00e9"})
    EXPECT_FALSE(is_name(text, 63)) << text;
  EXPECT_TRUE(is_name(std::string(31, 'x'), 31));
  EXPECT_FALSE(is_name(std::string(32, 'x'), 31));
}

TEST(KeyText, DescribesTheWantedValueWithItsUnit) {
  const Key& rto = *find_key("tcp", "rto_min_us");
  EXPECT_EQ(full_name(rto.section, rto.name), "tcp.rto_min_us");
  EXPECT_EQ(wanted(rto), "an integer, 100..1000000 us");
  EXPECT_EQ(mend_value(rto), "write an integer, 100..1000000 us, or remove the line to get 5000");
  EXPECT_EQ(full_name("", "schema"), "schema");
  EXPECT_EQ(wanted(*find_key("tcp", "pacing")), "true or false");
  EXPECT_EQ(wanted(*find_key("poller", "mode")), "one of \"auto\", \"dedicated\", \"shared\"");
  EXPECT_EQ(mend_value(*find_key("", "schema")).find("remove the line"), std::string::npos)
      << "there is no default";
}

}  // namespace
}  // namespace ztcp::config
