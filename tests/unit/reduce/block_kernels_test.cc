// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/reduce/block_kernels.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "transport/reduce/block_float.h"
#include "transport/reduce/narrow_float.h"

namespace ztcp::reduce {
namespace {

using Vector = std::vector<std::byte>;

constexpr std::array kBlockTypes{ElementType::kFloat32, ElementType::kFloat16,
                                 ElementType::kBfloat16};
constexpr std::array kSets{Vectors::kBaseline, Vectors::kAvx2, Vectors::kAvx512};
constexpr int kLeastScale = 11;  // 2^-116.
constexpr int kMostScale = 247;  // 2^120.
constexpr float kInfinite = std::numeric_limits<float>::infinity();
constexpr float kMost = std::numeric_limits<float>::max();

// --- The format, by its definition ---------------------------------------------------------------

bool is_nan_code(unsigned code) { return (code & 0x7f) == 0x7f; }

double value_of(unsigned code, int scale) {
  const unsigned exponent = (code >> 3) & 0xf;
  const unsigned mantissa = code & 7;
  const double magnitude = exponent == 0
                               ? std::ldexp(mantissa, -9)
                               : std::ldexp(8 + mantissa, static_cast<int>(exponent) - 10);
  return std::ldexp((code & 0x80) != 0 ? -magnitude : magnitude, scale - 127);
}

double largest_finite(const float* values, std::size_t count) {
  double most = 0;
  for (std::size_t i = 0; i < count; ++i)
    if (std::isfinite(values[i])) most = std::max(most, std::abs(static_cast<double>(values[i])));
  return most;
}

// The smallest with which nothing saturates.
int scale_for(double largest) {
  int scale = kLeastScale;
  while (std::ldexp(largest, 127 - scale) > 464) ++scale;
  return scale;
}

// The nearest E4M3, at a middle the even one; the last binade of float has no 2^128.
unsigned nearest_code(double value, int scale) {
  if (!std::isfinite(value)) return 0xff;
  const unsigned last = scale == kMostScale ? 0x77 : 0x7e;
  unsigned best = 0;
  for (unsigned code = 1; code <= last; ++code) {
    const double nearer = std::abs(std::abs(value) - value_of(code, scale)) -
                          std::abs(std::abs(value) - value_of(best, scale));
    if (nearer < 0 || (nearer == 0 && code % 2 == 0)) best = code;
  }
  return best | (std::signbit(value) ? 0x80U : 0U);
}

Vector expected_blocks(const std::vector<float>& values) {
  Vector out;
  for (std::size_t at = 0; at < values.size(); at += kBlockElements) {
    const std::size_t count = std::min(kBlockElements, values.size() - at);
    const int scale = scale_for(largest_finite(&values[at], count));
    out.push_back(static_cast<std::byte>(scale));
    for (std::size_t i = 0; i < count; ++i)
      out.push_back(static_cast<std::byte>(nearest_code(values[at + i], scale)));
  }
  return out;
}

// --- Vectors -------------------------------------------------------------------------------------

float element(ElementType type, const std::byte* from, std::size_t i) {
  if (type == ElementType::kFloat32) {
    float value = 0;
    std::memcpy(&value, from + i * sizeof value, sizeof value);
    return value;
  }
  std::uint16_t stored = 0;
  std::memcpy(&stored, from + i * sizeof stored, sizeof stored);
  return type == ElementType::kFloat16 ? widen_float16(stored) : widen_bfloat16(stored);
}

std::vector<float> floats(ElementType type, const Vector& bytes) {
  std::vector<float> out(bytes.size() / size_of(type));
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = element(type, bytes.data(), i);
  return out;
}

float rounded_to(ElementType type, float value) {
  if (type == ElementType::kFloat16) return widen_float16(narrow_float16(value));
  if (type == ElementType::kBfloat16) return widen_bfloat16(narrow_bfloat16(value));
  return value;
}

// Every kind of float: also NaN, infinity and denormal. Blocks differ by the share of their values
// that are close to each other.
Vector random_values(ElementType type, std::size_t count, std::uint32_t seed) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 1);
  Vector out(count * size_of(type));
  for (std::size_t i = 0; i < count; ++i) {
    const std::size_t kind = (i / kBlockElements) % 3;
    auto bits = static_cast<std::uint32_t>(random());
    if (kind == 1 || (kind == 2 && bits % 8 != 0)) {
      const float value = normal(random);
      bits = type == ElementType::kFloat32   ? std::bit_cast<std::uint32_t>(value)
             : type == ElementType::kFloat16 ? narrow_float16(value)
                                             : narrow_bfloat16(value);
    }
    std::memcpy(out.data() + i * size_of(type), &bits, size_of(type));
  }
  return out;
}

Vector blocks_of(const std::vector<float>& values, Vectors set = Vectors::kBaseline) {
  Vector out(block_bytes(values.size()));
  const auto* const from = reinterpret_cast<const std::byte*>(values.data());
  block_kernel(BlockWork::kNarrow, ElementType::kFloat32, set)(out.data(), &from, 1,
                                                               {0, values.size()});
  return out;
}

std::vector<float> values_of(const Vector& blocks, std::size_t count,
                             Vectors set = Vectors::kBaseline) {
  std::vector<float> out(count);
  const std::byte* const from = blocks.data();
  block_kernel(BlockWork::kSum, ElementType::kFloat32, set)(
      reinterpret_cast<std::byte*>(out.data()), &from, 1, {0, count});
  return out;
}

void expect_same(float got, float expected) {
  if (std::isnan(expected)) {
    ASSERT_TRUE(std::isnan(got));
  } else {
    ASSERT_EQ(got, expected);
  }
}

// --- Tests ---------------------------------------------------------------------------------------

TEST(BlockFloat, SizesCountAByteForEachBlockBegun) {
  EXPECT_EQ(block_bytes(0), 0U);
  EXPECT_EQ(block_bytes(1), 2U);
  EXPECT_EQ(block_bytes(32), 33U);
  EXPECT_EQ(block_bytes(33), 35U);
  for (const std::size_t bytes : {32, 33, 65, 66, 16'384, 131'072}) {
    EXPECT_LE(block_bytes(whole_blocks_in(bytes)), bytes);
    EXPECT_GT(block_bytes(whole_blocks_in(bytes) + kBlockElements), bytes);
  }
}

class BlockSetTest : public testing::TestWithParam<Vectors> {
 protected:
  void SetUp() override {
    if (!is_supported(GetParam())) GTEST_SKIP() << "not on this CPU";
  }
};
INSTANTIATE_TEST_SUITE_P(Sets, BlockSetTest, testing::ValuesIn(kSets));

TEST_P(BlockSetTest, EveryCodeAtEveryScale_WidensToItsValue) {
  for (int scale = kLeastScale; scale <= kMostScale; ++scale) {
    Vector blocks;
    for (unsigned code = 0; code < 256; ++code) {
      if (code % kBlockElements == 0) blocks.push_back(static_cast<std::byte>(scale));
      blocks.push_back(static_cast<std::byte>(code));
    }
    const std::vector<float> got = values_of(blocks, 256, GetParam());
    for (unsigned code = 0; code < 256; ++code) {
      if (is_nan_code(code)) {
        ASSERT_TRUE(std::isnan(got[code])) << code;
      } else if (scale < kMostScale || (code & 0x7f) < 0x78) {  // Others are above all floats.
        ASSERT_EQ(got[code], value_of(code, scale)) << code << " at " << scale;
      }
    }
  }
}

TEST_P(BlockSetTest, EveryWidenedCode_NarrowsToItself) {
  for (int scale = kLeastScale; scale <= kMostScale; ++scale) {
    const unsigned largest = scale == kMostScale ? 0x77 : 0x7e;
    std::vector<float> values;
    std::vector<unsigned> codes;
    for (unsigned code = 0; code < 256; ++code) {
      if ((code & 0x7f) > largest) continue;
      // The first of each block determines the scale.
      if (codes.size() % kBlockElements == 0) codes.push_back(largest);
      codes.push_back(code);
    }
    for (const unsigned code : codes) values.push_back(static_cast<float>(value_of(code, scale)));
    const Vector blocks = blocks_of(values, GetParam());
    for (std::size_t i = 0; i < codes.size(); ++i) {
      ASSERT_EQ(std::to_integer<int>(blocks[i / 32 * 33]), scale);
      ASSERT_EQ(std::to_integer<unsigned>(blocks[i + i / 32 + 1]), codes[i]) << scale;
    }
  }
}

TEST_P(BlockSetTest, BetweenTwoCodes_TheNearerIsTakenAndAtTheMiddleTheEven) {
  for (const int scale : {kLeastScale, 100, 127, 128, 246})
    for (const float sign : {1.0F, -1.0F})
      for (unsigned below = 0; below < 0x7e; ++below) {
        const auto middle =
            static_cast<float>((value_of(below, scale) + value_of(below + 1, scale)) / 2);
        const std::vector<float> values{static_cast<float>(value_of(0x7e, scale)), sign * middle,
                                        sign * std::nextafter(middle, 0.0F),
                                        sign * std::nextafter(middle, kInfinite)};
        const Vector blocks = blocks_of(values, GetParam());
        const unsigned bit = sign < 0 ? 0x80 : 0;
        ASSERT_EQ(std::to_integer<unsigned>(blocks[2]), (below + below % 2) | bit) << scale;
        ASSERT_EQ(std::to_integer<unsigned>(blocks[3]), below | bit) << scale;
        ASSERT_EQ(std::to_integer<unsigned>(blocks[4]), (below + 1) | bit) << scale;
      }
}

TEST_P(BlockSetTest, TheScaleIsTheSmallestWithWhichNothingSaturates) {
  for (int scale = kLeastScale; scale < kMostScale; ++scale) {
    const auto most = static_cast<float>(std::ldexp(464, scale - 127));
    EXPECT_EQ(std::to_integer<int>(blocks_of({most}, GetParam())[0]), scale);
    const Vector more = blocks_of({std::nextafter(most, kInfinite)}, GetParam());
    EXPECT_EQ(std::to_integer<int>(more[0]), scale + 1);
    EXPECT_EQ(value_of(std::to_integer<unsigned>(more[1]), scale + 1),
              std::ldexp(480, scale - 127));
  }
}

TEST_P(BlockSetTest, ZerosStayZeros) {
  const std::vector<float> zeros(70, 0.0F);
  EXPECT_EQ(values_of(blocks_of(zeros, GetParam()), zeros.size(), GetParam()), zeros);
  const std::vector<float> negative = values_of(blocks_of({-0.0F}, GetParam()), 1, GetParam());
  EXPECT_EQ(negative[0], 0.0F);
}

TEST_P(BlockSetTest, TheLargestFloats_StayFinite) {
  const auto largest = static_cast<float>(std::ldexp(240, 120));
  const std::vector<float> got =
      values_of(blocks_of({kMost, -kMost, largest, 1.0F}, GetParam()), 4, GetParam());
  EXPECT_EQ(got, (std::vector<float>{largest, -largest, largest, 0.0F}));
}

TEST_P(BlockSetTest, DenormalsAndTheSmallestNormal_BecomeZero) {
  const float least = std::numeric_limits<float>::min();
  const std::vector<float> values{least, -least / 2, std::nextafter(least, 0.0F),
                                  std::numeric_limits<float>::denorm_min()};
  const std::vector<float> got = values_of(blocks_of(values, GetParam()), 4, GetParam());
  EXPECT_EQ(got, std::vector<float>(4, 0.0F));
  // More than half of the smallest result, 2^-125.
  const float half = std::nextafter(least, 1.0F);
  EXPECT_EQ(values_of(blocks_of({half}, GetParam()), 1, GetParam())[0], 2 * least);
}

TEST_P(BlockSetTest, AValueThatIsNotFinite_BecomesNanAlone) {
  std::vector<float> values =
      floats(ElementType::kFloat32, random_values(ElementType::kFloat32, 96, 3));
  for (float& value : values)
    if (!std::isfinite(value)) value = 1;
  values[33] = 0;
  const std::vector<float> clean = values_of(blocks_of(values, GetParam()), 96, GetParam());
  for (const float bad : {kInfinite, -kInfinite, std::numeric_limits<float>::quiet_NaN(),
                          std::bit_cast<float>(0x7f80'0001U), std::bit_cast<float>(0xffff'ffffU)}) {
    values[33] = bad;
    const Vector blocks = blocks_of(values, GetParam());
    EXPECT_EQ(blocks[35], std::byte{0xff});
    const std::vector<float> got = values_of(blocks, 96, GetParam());
    for (std::size_t i = 0; i < got.size(); ++i) {
      if (i == 33) {
        EXPECT_TRUE(std::isnan(got[i]));
      } else {
        EXPECT_EQ(got[i], clean[i]) << i;
      }
    }
  }
}

// As block_float.h and docs/collnet.md state it.
TEST_P(BlockSetTest, TheErrorIsBounded) {
  for (std::uint32_t seed = 0; seed < 8; ++seed) {
    const std::vector<float> values =
        floats(ElementType::kFloat32, random_values(ElementType::kFloat32, 9'999, seed));
    const std::vector<float> got =
        values_of(blocks_of(values, GetParam()), values.size(), GetParam());
    for (std::size_t i = 0; i < values.size(); ++i) {
      if (!std::isfinite(values[i])) continue;
      const std::size_t begin = i / kBlockElements * kBlockElements;
      const double largest =
          largest_finite(&values[begin], std::min(kBlockElements, values.size() - begin));
      const double value = values[i];
      ASSERT_LE(std::abs(got[i] - value),
                std::max({std::abs(value) / 16, std::ldexp(largest, -17), std::ldexp(1, -126)}))
          << value << " in a block up to " << largest;
    }
  }
}

class BlockKernelsTest : public testing::TestWithParam<std::tuple<ElementType, Vectors>> {
 protected:
  void SetUp() override {
    if (!is_supported(std::get<1>(GetParam()))) GTEST_SKIP() << "not on this CPU";
  }
  static constexpr std::array<std::size_t, 12> kCounts{0,  1,  31,  32,  33,  63,
                                                       64, 65, 511, 512, 545, 1'003};
};
INSTANTIATE_TEST_SUITE_P(All, BlockKernelsTest,
                         testing::Combine(testing::ValuesIn(kBlockTypes),
                                          testing::ValuesIn(kSets)));

TEST_P(BlockKernelsTest, Narrowing_EqualsTheDefinitionAtEverySizeAndAlignment) {
  const auto [type, set] = GetParam();
  const Kernel kernel = block_kernel(BlockWork::kNarrow, type, set);
  for (const std::size_t count : kCounts) {
    const Vector values = random_values(type, count, static_cast<std::uint32_t>(count));
    Vector shifted(values.size() + 1);
    std::copy(values.begin(), values.end(), shifted.begin() + 1);
    const std::byte* const from = shifted.data() + 1;
    Vector got(block_bytes(count) + 5, std::byte{0x5a});
    kernel(got.data() + 3, &from, 1, {0, count});
    EXPECT_EQ(got[2], std::byte{0x5a});
    EXPECT_EQ(got[got.size() - 2], std::byte{0x5a});
    const Vector blocks(got.begin() + 3, got.end() - 2);
    ASSERT_TRUE(blocks == expected_blocks(floats(type, values))) << count;
  }
}

TEST_P(BlockKernelsTest, Sums_EqualAPlainLoopAtEverySize) {
  const auto [type, set] = GetParam();
  for (const std::size_t count : kCounts)
    for (const std::size_t sources : {1, 2, 3, 5}) {
      std::vector<Vector> data;
      std::vector<const std::byte*> from;
      std::vector<float> sums(count);
      for (std::size_t k = 0; k < sources; ++k) {
        const auto seed = static_cast<std::uint32_t>(count * 8 + k);
        data.push_back(blocks_of(floats(type, random_values(type, count, seed))));
        const std::vector<float> values = values_of(data[k], count);
        for (std::size_t i = 0; i < count; ++i) sums[i] = k == 0 ? values[i] : sums[i] + values[i];
      }
      for (const Vector& one : data) from.push_back(one.data());
      Vector got(count * size_of(type) + 2, std::byte{0x5a});
      block_kernel(BlockWork::kSum, type, set)(got.data() + 1, from.data(), sources, {0, count});
      EXPECT_EQ(got.front(), std::byte{0x5a});
      EXPECT_EQ(got.back(), std::byte{0x5a});
      for (std::size_t i = 0; i < count; ++i)
        expect_same(element(type, got.data() + 1, i), rounded_to(type, sums[i]));

      Vector blocks(block_bytes(count) + 1, std::byte{0x5a});
      block_kernel(BlockWork::kSumAsBlocks, type, set)(blocks.data(), from.data(), sources,
                                                       {0, count});
      EXPECT_EQ(blocks.back(), std::byte{0x5a});
      blocks.pop_back();
      ASSERT_TRUE(blocks == expected_blocks(sums)) << count;
      // Over a source.
      std::byte* const over = data.back().data();
      block_kernel(BlockWork::kSumAsBlocks, type, set)(over, from.data(), sources, {0, count});
      ASSERT_TRUE(data.back() == blocks) << count;
    }
}

// As threads share a vector.
TEST_P(BlockKernelsTest, RangesOfWholeBlocks_GiveTheSameBytes) {
  const auto [type, set] = GetParam();
  constexpr std::size_t kCount = 1'003;
  const Vector values = random_values(type, kCount, 1);
  const std::byte* const from = values.data();
  Vector whole(block_bytes(kCount));
  Vector parts(block_bytes(kCount));
  const Kernel narrow = block_kernel(BlockWork::kNarrow, type, set);
  narrow(whole.data(), &from, 1, {0, kCount});
  for (const Range range : {Range{0, 32}, Range{640, kCount - 640}, Range{32, 608}})
    narrow(parts.data(), &from, 1, range);
  EXPECT_TRUE(parts == whole);
}

TEST(BlockKernels, OtherTypes_HaveNone) {
  EXPECT_FALSE(has_blocks(ElementType::kFloat64));
  EXPECT_FALSE(has_blocks(ElementType::kInt32));
  EXPECT_EQ(block_kernel(BlockWork::kNarrow, ElementType::kFloat64, Vectors::kBaseline), nullptr);
  for (const ElementType type : kBlockTypes) EXPECT_TRUE(has_blocks(type));
}

TEST(BlockKernels, ASumThatOverflows_BecomesNanInBlocks) {
  const Vector most = blocks_of({kMost, 1.0F});
  const std::vector<const std::byte*> from{most.data(), most.data()};
  Vector sum(most.size());
  sum_blocks(sum.data(), from, {0, 2});
  const std::vector<float> got = values_of(sum, 2);
  EXPECT_TRUE(std::isnan(got[0]));
}

TEST(BlockKernels, TheWidestSet_GivesTheBytesOfTheBaseline) {
  const Vector values = random_values(ElementType::kBfloat16, 10'000, 5);
  Vector blocks(block_bytes(10'000));
  narrow_to_blocks(ElementType::kBfloat16, blocks.data(), values.data(), {0, 10'000});
  EXPECT_TRUE(blocks == blocks_of(floats(ElementType::kBfloat16, values)));
  Vector back(values.size());
  const std::byte* const from = blocks.data();
  sum_of_blocks(ElementType::kBfloat16, back.data(), {&from, 1}, {0, 10'000});
  const std::vector<float> expected = values_of(blocks, 10'000);
  for (std::size_t i = 0; i < expected.size(); ++i)
    expect_same(element(ElementType::kBfloat16, back.data(), i), expected[i]);
}

}  // namespace
}  // namespace ztcp::reduce
