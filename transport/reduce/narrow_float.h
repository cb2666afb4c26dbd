// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Conversions between float and the two floats of 16 bits. Both directions keep infinities and
// denormals; NaN stays NaN. Towards 16 bits they round to nearest, ties to even. Written without
// branches, for the compiler's vectoriser.
#pragma once

#include <bit>
#include <cstdint>

namespace ztcp::reduce {

inline constexpr std::uint32_t kInfinityBits = 0x7f80'0000;

constexpr float widen_bfloat16(std::uint16_t stored) {
  return std::bit_cast<float>(static_cast<std::uint32_t>(stored) << 16U);
}

constexpr std::uint16_t narrow_bfloat16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t rounded = (bits + 0x7fffU + ((bits >> 16U) & 1U)) >> 16U;
  // Rounding could carry a NaN into infinity.
  const std::uint32_t quiet = (bits >> 16U) | 0x40U;
  return static_cast<std::uint16_t>((bits & 0x7fff'ffffU) > kInfinityBits ? quiet : rounded);
}

constexpr float widen_float16(std::uint16_t stored) {
  const std::uint32_t all = stored;
  const std::uint32_t sign = (all & 0x8000U) << 16U;
  const std::uint32_t shifted = (all & 0x7fffU) << 13U;
  constexpr std::uint32_t kRebias = 112U << 23U;
  // Adds a hidden one to a denormal's mantissa and takes it away: no operand is denormal, which
  // would cost CPUs a hundred cycles.
  constexpr std::uint32_t kHidden = 113U << 23U;
  const auto denormal = std::bit_cast<std::uint32_t>(std::bit_cast<float>(shifted + kHidden) -
                                                     std::bit_cast<float>(kHidden));
  std::uint32_t out = shifted < (1U << 23U) ? denormal : shifted + kRebias;
  out = shifted >= 0x0f80'0000U ? shifted | kInfinityBits : out;
  return std::bit_cast<float>(sign | out);
}

constexpr std::uint16_t narrow_float16(float value) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16U) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7fff'ffffU;
  constexpr std::uint32_t kRebias = 112U << 23U;
  const std::uint32_t normal = (magnitude - kRebias + 0x0fffU + ((magnitude >> 13U) & 1U)) >> 13U;
  // One half has the unit of the smallest denormal in its last place, so the addition rounds.
  const std::uint32_t denormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + 0.5F) -
      std::bit_cast<std::uint32_t>(0.5F);
  constexpr std::uint32_t kSmallestNormal = 113U << 23U;
  constexpr std::uint32_t kTooLarge = 143U << 23U;  // 2^16.
  const std::uint32_t quiet = 0x7e00U | ((magnitude >> 13U) & 0x3ffU);
  std::uint32_t out = magnitude < kSmallestNormal ? denormal : normal;
  out = magnitude >= kTooLarge ? 0x7c00U : out;
  out = magnitude > kInfinityBits ? quiet : out;
  return static_cast<std::uint16_t>(sign | out);
}

}  // namespace ztcp::reduce
