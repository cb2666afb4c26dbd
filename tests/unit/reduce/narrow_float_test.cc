// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/reduce/narrow_float.h"

#include <bit>
#include <cmath>
#include <cstdint>
#include <limits>

#include <gtest/gtest.h>

namespace ztcp::reduce {
namespace {

constexpr std::uint32_t kAll16 = 1U << 16U;
constexpr float kInfinity = std::numeric_limits<float>::infinity();

// The value of a 16-bit float with this many bits of mantissa, by the definition.
double value_of(std::uint16_t stored, int mantissa_bits, int bias) {
  const int exponent_bits = 15 - mantissa_bits;
  const int exponent = (stored >> mantissa_bits) & ((1 << exponent_bits) - 1);
  const int mantissa = stored & ((1 << mantissa_bits) - 1);
  const double sign = (stored & 0x8000) != 0 ? -1 : 1;
  if (exponent == (1 << exponent_bits) - 1) return mantissa != 0 ? NAN : sign * kInfinity;
  const int hidden = exponent == 0 ? 0 : 1 << mantissa_bits;
  return sign * std::ldexp(hidden + mantissa, std::max(exponent, 1) - bias - mantissa_bits);
}

template <class Narrow>
void expect_same_value(std::uint16_t stored, float value, double expected, Narrow narrow) {
  if (std::isnan(expected)) {
    EXPECT_TRUE(std::isnan(value)) << stored;
    return;
  }
  EXPECT_EQ(value, expected) << stored;
  EXPECT_EQ(narrow(value), stored);
}

TEST(NarrowFloat, EveryFloat16_WidensToItsValueAndBack) {
  for (std::uint32_t i = 0; i < kAll16; ++i) {
    const auto stored = static_cast<std::uint16_t>(i);
    expect_same_value(stored, widen_float16(stored), value_of(stored, 10, 15), narrow_float16);
  }
}

TEST(NarrowFloat, EveryBfloat16_WidensToItsValueAndBack) {
  for (std::uint32_t i = 0; i < kAll16; ++i) {
    const auto stored = static_cast<std::uint16_t>(i);
    expect_same_value(stored, widen_bfloat16(stored), value_of(stored, 7, 127), narrow_bfloat16);
  }
}

// Between two neighbours the nearer one is taken, and at the middle the even one.
template <class Narrow>
void expect_rounding_between(std::uint16_t below, double low, double high, Narrow narrow) {
  const auto above = static_cast<std::uint16_t>(below + 1);
  const auto middle = static_cast<float>((low + high) / 2);
  EXPECT_EQ(narrow(middle), (below & 1) == 0 ? below : above) << below;
  EXPECT_EQ(narrow(std::nextafter(middle, 0.0F)), below) << below;
  EXPECT_EQ(narrow(std::nextafter(middle, kInfinity)), above) << below;
}

TEST(NarrowFloat, Float16_RoundsToNearestEven) {
  for (std::uint16_t i = 0; i < 0x7bff; ++i)
    expect_rounding_between(i, value_of(i, 10, 15),
                            value_of(static_cast<std::uint16_t>(i + 1), 10, 15), narrow_float16);
  // 65504 is the largest; from the middle to the next power on, infinity.
  EXPECT_EQ(narrow_float16(65519.996F), 0x7bff);
  EXPECT_EQ(narrow_float16(65520.0F), 0x7c00);
  EXPECT_EQ(narrow_float16(-1e30F), 0xfc00);
}

TEST(NarrowFloat, Bfloat16_RoundsToNearestEven) {
  for (std::uint16_t i = 0; i < 0x7f7f; ++i)
    expect_rounding_between(i, value_of(i, 7, 127),
                            value_of(static_cast<std::uint16_t>(i + 1), 7, 127), narrow_bfloat16);
  EXPECT_EQ(narrow_bfloat16(std::numeric_limits<float>::max()), 0x7f80);
}

TEST(NarrowFloat, EveryNan_StaysNan) {
  for (const std::uint32_t payload : {1U, 0x1fffU, 0x2000U, 0x7f'ffffU, 0x40'0000U})
    for (const std::uint32_t sign : {0U, 0x8000'0000U}) {
      const auto nan = std::bit_cast<float>(sign | kInfinityBits | payload);
      EXPECT_TRUE(std::isnan(widen_float16(narrow_float16(nan))));
      EXPECT_TRUE(std::isnan(widen_bfloat16(narrow_bfloat16(nan))));
    }
}

}  // namespace
}  // namespace ztcp::reduce
