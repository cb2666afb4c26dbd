// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "tools/ztcp_perf/pattern.h"

#include <algorithm>
#include <cmath>
#include <cstring>

namespace ztcp::perf {
namespace {

constexpr std::size_t kBlock = 1024;  // Elements summed per block, which stays in cache.

inline std::uint32_t mix(std::uint32_t x) {
  x ^= x >> 16U;
  x *= 0x7feb352dU;
  x ^= x >> 15U;
  x *= 0x846ca68bU;
  x ^= x >> 16U;
  return x;
}

inline std::uint32_t salt_of(int from, int to, std::uint32_t iteration) {
  return mix(static_cast<std::uint32_t>(from) * 0x9e3779b9U + static_cast<std::uint32_t>(to) +
             mix(iteration));
}

inline float summand(std::size_t index, std::uint32_t salt) {
  // 1 to 256: never zero, so that a missing summand is noticed.
  return static_cast<float>(
      static_cast<std::int32_t>((mix(static_cast<std::uint32_t>(index) ^ salt) & 0xffU) + 1));
}

inline std::uint32_t element(std::size_t index, std::uint32_t salt) {
  return mix(static_cast<std::uint32_t>(index) + salt) | 1U;  // Never the poison, which is even.
}

}  // namespace

void fill_summands(std::span<float> out, int rank, std::uint32_t iteration) {
  const std::uint32_t salt = salt_of(rank, 0, iteration);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = summand(i, salt);
}

std::uint64_t count_wrong_sums(std::span<const float> got, int ranks, std::uint32_t iteration,
                               float tolerance, std::size_t first) {
  std::uint64_t wrong = 0;
  float sum[kBlock];
  for (std::size_t begin = 0; begin < got.size(); begin += kBlock) {
    const std::size_t count = std::min(kBlock, got.size() - begin);
    std::fill_n(sum, count, 0.0F);
    for (int rank = 0; rank < ranks; ++rank) {
      const std::uint32_t salt = salt_of(rank, 0, iteration);
      for (std::size_t i = 0; i < count; ++i) sum[i] += summand(first + begin + i, salt);
    }
    // A NaN fails the comparison.
    for (std::size_t i = 0; i < count; ++i)
      wrong += std::abs(got[begin + i] - sum[i]) <= sum[i] * tolerance ? 0U : 1U;
  }
  return wrong;
}

void fill_block(std::span<std::uint32_t> out, int from, int to, std::uint32_t iteration) {
  const std::uint32_t salt = salt_of(from, to, iteration);
  for (std::size_t i = 0; i < out.size(); ++i) out[i] = element(i, salt);
}

std::uint64_t count_wrong_block(std::span<const std::uint32_t> got, int from, int to,
                                std::uint32_t iteration) {
  const std::uint32_t salt = salt_of(from, to, iteration);
  std::uint64_t wrong = 0;
  for (std::size_t i = 0; i < got.size(); ++i) wrong += got[i] == element(i, salt) ? 0U : 1U;
  return wrong;
}

// As a float a NaN, as an integer even.
void poison(std::span<std::byte> out) { std::memset(out.data(), 0xfe, out.size()); }

}  // namespace ztcp::perf
