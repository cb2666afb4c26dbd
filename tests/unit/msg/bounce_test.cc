// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/msg/bounce.h"

#include <vector>

#include <gtest/gtest.h>

namespace ztcp::msg {
namespace {

std::vector<std::byte> filled(std::size_t size, std::size_t with) {
  return std::vector<std::byte>(size, static_cast<std::byte>(with));
}

TEST(Bounce, NeverPromisesMoreThanTheAllowance) {
  Bounce bounce(8192);
  EXPECT_TRUE(bounce.reserve(8000));
  EXPECT_FALSE(bounce.reserve(193));
  EXPECT_TRUE(bounce.reserve(192));
  EXPECT_FALSE(bounce.reserve(1));
  EXPECT_EQ(bounce.reserved_bytes(), 8192U);
  bounce.unreserve(4096);
  EXPECT_TRUE(bounce.reserve(4096));
  EXPECT_FALSE(bounce.reserve(~std::uint64_t{0}));
}

class AnyAllowance : public testing::TestWithParam<std::uint32_t> {};

// The worst case of the comment in bounce.h: 31 messages of a byte and one with the rest.
TEST_P(AnyAllowance, HoldsItsWholeAllowanceIn32Messages) {
  const std::uint32_t allowance = GetParam();
  Bounce bounce(allowance);
  std::array<Bounce::Table, 32> tables;
  for (Bounce::Table& table : tables) table.clear();
  for (int round = 0; round < 3; ++round) {
    for (std::size_t i = 0; i < 31; ++i) ASSERT_TRUE(bounce.write(tables[i], 0, filled(1, i)));
    const auto large = filled(allowance - 31, 99);
    ASSERT_TRUE(bounce.write(tables[31], 0, large));
    for (std::size_t i = 0; i < 31; ++i) {
      std::byte out{};
      bounce.read(tables[i], 0, {&out, 1});
      EXPECT_EQ(out, static_cast<std::byte>(i));
    }
    std::vector<std::byte> out(large.size());
    bounce.read(tables[31], 0, out);
    EXPECT_EQ(out, large);
    for (auto& table : tables) bounce.release(table);
  }
}

// Every message takes a page and a bit.
TEST_P(AnyAllowance, HoldsMessagesThatEndOnNewPages) {
  const std::uint32_t allowance = GetParam();
  Bounce bounce(allowance);
  std::array<Bounce::Table, 32> tables;
  for (Bounce::Table& table : tables) table.clear();
  for (auto& table : tables) ASSERT_TRUE(bounce.write(table, 0, filled(allowance / 32, 1)));
  for (auto& table : tables) bounce.release(table);
  for (std::size_t i = 0; i < 32; ++i)
    ASSERT_TRUE(bounce.write(tables[i], 0, filled(allowance / 32 + 1, i)));
  Bounce::Table more;
  more.clear();
  EXPECT_FALSE(bounce.write(more, 0, filled(1, 1)));  // Fails rather than overwrite.
}

INSTANTIATE_TEST_SUITE_P(Sizes, AnyAllowance, testing::Values(4096, 12'288, 131'072, 1'048'576));

}  // namespace
}  // namespace ztcp::msg
