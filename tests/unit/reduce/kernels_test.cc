// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/reduce/kernels.h"

#include <array>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>
#include <random>
#include <tuple>
#include <vector>

#include <gtest/gtest.h>

#include "tests/unit/reduce/gradients.h"
#include "transport/reduce/narrow_float.h"

namespace ztcp::reduce {
namespace {

constexpr std::array kTypes{ElementType::kInt8,    ElementType::kUint8,   ElementType::kInt32,
                            ElementType::kUint32,  ElementType::kInt64,   ElementType::kUint64,
                            ElementType::kFloat16, ElementType::kFloat32, ElementType::kFloat64,
                            ElementType::kBfloat16};
constexpr std::array kReductions{Reduction::kSum, Reduction::kProduct, Reduction::kMax,
                                 Reduction::kMin};

template <class T>
T reference(Reduction reduction, T a, T b) {
  if constexpr (std::is_floating_point_v<T>) {
    switch (reduction) {
      case Reduction::kSum:
        return a + b;
      case Reduction::kProduct:
        return a * b;
      case Reduction::kMax:
        return std::isnan(a) ? b : std::isnan(b) ? a : std::max(a, b);
      case Reduction::kMin:
        return std::isnan(a) ? b : std::isnan(b) ? a : std::min(a, b);
    }
  } else {
    const auto x = static_cast<std::uint64_t>(a);
    const auto y = static_cast<std::uint64_t>(b);
    switch (reduction) {
      case Reduction::kSum:
        return static_cast<T>(x + y);
      case Reduction::kProduct:
        return static_cast<T>(x * y);
      case Reduction::kMax:
        return std::max(a, b);
      case Reduction::kMin:
        return std::min(a, b);
    }
  }
  return a;
}

using Vector = std::vector<std::byte>;

template <class T>
T element(const std::byte* at) {
  T value;
  std::memcpy(&value, at, sizeof value);
  return value;
}

template <class T>
void expect_reduced(Reduction reduction, const std::vector<const std::byte*>& from,
                    const std::byte* got, std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    T expected = element<T>(from[0] + i * sizeof(T));
    for (std::size_t k = 1; k < from.size(); ++k)
      expected = reference(reduction, expected, element<T>(from[k] + i * sizeof(T)));
    const T value = element<T>(got + i * sizeof(T));
    if constexpr (std::is_floating_point_v<T>)
      if (std::isnan(expected)) {
        ASSERT_TRUE(std::isnan(value)) << i;
        continue;
      }
    ASSERT_EQ(value, expected) << i;
  }
}

// 16-bit floats are computed as float and rounded once.
template <class Widen, class Narrow>
void expect_reduced_narrow(Reduction reduction, const std::vector<const std::byte*>& from,
                           const std::byte* got, std::size_t count, Widen widen, Narrow narrow) {
  for (std::size_t i = 0; i < count; ++i) {
    float expected = widen(element<std::uint16_t>(from[0] + i * 2));
    for (std::size_t k = 1; k < from.size(); ++k)
      expected = reference(reduction, expected, widen(element<std::uint16_t>(from[k] + i * 2)));
    const auto value = element<std::uint16_t>(got + i * 2);
    if (std::isnan(expected)) {
      ASSERT_TRUE(std::isnan(widen(value))) << i;
      continue;
    }
    ASSERT_EQ(widen(value), widen(narrow(expected))) << i;
  }
}

void expect_reduced(ElementType type, Reduction reduction,
                    const std::vector<const std::byte*>& from, const std::byte* got,
                    std::size_t count) {
  switch (type) {
    case ElementType::kInt8:
      return expect_reduced<std::int8_t>(reduction, from, got, count);
    case ElementType::kUint8:
      return expect_reduced<std::uint8_t>(reduction, from, got, count);
    case ElementType::kInt32:
      return expect_reduced<std::int32_t>(reduction, from, got, count);
    case ElementType::kUint32:
      return expect_reduced<std::uint32_t>(reduction, from, got, count);
    case ElementType::kInt64:
      return expect_reduced<std::int64_t>(reduction, from, got, count);
    case ElementType::kUint64:
      return expect_reduced<std::uint64_t>(reduction, from, got, count);
    case ElementType::kFloat32:
      return expect_reduced<float>(reduction, from, got, count);
    case ElementType::kFloat64:
      return expect_reduced<double>(reduction, from, got, count);
    case ElementType::kFloat16:
      return expect_reduced_narrow(reduction, from, got, count, widen_float16, narrow_float16);
    case ElementType::kBfloat16:
      return expect_reduced_narrow(reduction, from, got, count, widen_bfloat16, narrow_bfloat16);
  }
}

// Random bits are also every kind of float: NaN, infinity, denormal.
Vector random_bits(std::size_t bytes, std::uint32_t seed) {
  std::mt19937 random(seed);
  Vector out(bytes);
  for (std::byte& one : out) one = static_cast<std::byte>(random());
  return out;
}

class KernelsTest : public testing::TestWithParam<std::tuple<ElementType, Reduction, Vectors>> {};

TEST_P(KernelsTest, EqualAPlainLoop_AtEverySizeAndAlignment) {
  const auto [type, reduction, vectors] = GetParam();
  if (!is_supported(vectors)) return;
  const Kernel kernel = kernel_of(type, reduction, vectors);
  for (const std::size_t count : {0, 1, 2, 3, 7, 15, 16, 17, 63, 511, 512, 513, 1025, 4099})
    for (const std::size_t sources : {1, 2, 3, 5}) {
      std::vector<Vector> data;
      std::vector<const std::byte*> from;
      for (std::size_t k = 0; k < sources; ++k) {
        // Each begins at another address modulo 8.
        data.push_back(
            random_bits(count * size_of(type) + k, static_cast<std::uint32_t>(count * 8 + k)));
        from.push_back(data.back().data() + k);
      }
      Vector got(count * size_of(type) + 5, std::byte{0x5a});
      kernel(got.data() + 3, from.data(), sources, {0, count});
      expect_reduced(type, reduction, from, got.data() + 3, count);
      EXPECT_EQ(got[0], std::byte{0x5a});
      EXPECT_EQ(got[count * size_of(type) + 3], std::byte{0x5a});
    }
}

TEST_P(KernelsTest, MayWriteOverASource) {
  const auto [type, reduction, vectors] = GetParam();
  if (!is_supported(vectors)) return;
  constexpr std::size_t kCount = 1500;
  const Vector a = random_bits(kCount * size_of(type), 1);
  const Vector b = random_bits(kCount * size_of(type), 2);
  Vector over = b;
  const std::vector<const std::byte*> from{a.data(), over.data()};
  kernel_of(type, reduction, vectors)(over.data(), from.data(), 2, {0, kCount});
  expect_reduced(type, reduction, {a.data(), b.data()}, over.data(), kCount);
}

INSTANTIATE_TEST_SUITE_P(All, KernelsTest,
                         testing::Combine(testing::ValuesIn(kTypes), testing::ValuesIn(kReductions),
                                          testing::Values(Vectors::kBaseline, Vectors::kAvx2,
                                                          Vectors::kAvx512)));

const std::byte* bytes_of(const std::vector<float>& values) {
  return reinterpret_cast<const std::byte*>(values.data());
}

TEST(Bfloat16Wire, NarrowedAndWidened_IsTheNearestBfloat16) {
  const std::vector<float> values = test::gradients(3001, 7);
  Vector narrow(values.size() * 2);
  std::vector<float> wide(values.size());
  narrow_to_bfloat16(narrow.data(), bytes_of(values), {0, values.size()});
  widen_from_bfloat16(reinterpret_cast<std::byte*>(wide.data()), narrow.data(), {0, values.size()});
  for (std::size_t i = 0; i < values.size(); ++i) {
    ASSERT_EQ(wide[i], widen_bfloat16(narrow_bfloat16(values[i])));
    ASSERT_LE(std::abs(wide[i] - values[i]), std::ldexp(std::abs(values[i]), -8));
  }
}

TEST(Bfloat16Wire, SumAsFloat_RoundsContributionsOnly) {
  const std::vector<float> a = test::gradients(1700, 1);
  const std::vector<float> b = test::gradients(1700, 2);
  Vector narrow_a(a.size() * 2);
  Vector narrow_b(b.size() * 2);
  narrow_to_bfloat16(narrow_a.data(), bytes_of(a), {0, a.size()});
  narrow_to_bfloat16(narrow_b.data(), bytes_of(b), {0, b.size()});
  std::vector<float> sum(a.size());
  const std::array<const std::byte*, 2> from{narrow_a.data(), narrow_b.data()};
  sum_bfloat16_as_float(reinterpret_cast<std::byte*>(sum.data()), from, {0, sum.size()});
  for (std::size_t i = 0; i < a.size(); ++i)
    ASSERT_EQ(sum[i],
              widen_bfloat16(narrow_bfloat16(a[i])) + widen_bfloat16(narrow_bfloat16(b[i])));
}

}  // namespace
}  // namespace ztcp::reduce
