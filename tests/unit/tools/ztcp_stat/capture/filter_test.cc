// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_stat/capture/filter.h"

#include <array>

#include <gtest/gtest.h>

namespace ztcp::capture {
namespace {

std::array<std::byte, 42> frame_of_type(int high, int low) {
  std::array<std::byte, 42> frame{};
  frame[12] = static_cast<std::byte>(high);
  frame[13] = static_cast<std::byte>(low);
  return frame;
}

TEST(Filter, KeepsFramesThatMatch) {
  const auto filter = Filter::compile("arp");
  ASSERT_TRUE(filter) << filter.error();
  EXPECT_TRUE(filter->matches(frame_of_type(8, 6), 42));
  EXPECT_FALSE(filter->matches(frame_of_type(8, 0), 42));
}

TEST(Filter, RefusesAWrongExpressionWithItsReason) {
  const auto filter = Filter::compile("host and");
  ASSERT_FALSE(filter);
  EXPECT_NE(filter.error().find("--filter 'host and'"), std::string::npos) << filter.error();
}

}  // namespace
}  // namespace ztcp::capture
