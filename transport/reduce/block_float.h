// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// Floats of 8 bits in blocks, close to MXFP8 of the Open Compute Project: 32 values share a scale,
// a power of two (E8M0). A value is 4 bits of exponent and 3 of mantissa (E4M3), so the largest is
// 448; there is no infinity, and 0x7f and 0xff are NaN.
//
// A block is its scale's byte, and then a byte for each value. The last block of a vector may be
// shorter, so element i has its byte at i + i / 32 + 1 in a vector of any length.
//
// With v a value, m the largest finite magnitude of its block, and r the result, |r - v| is at most
// the largest of
//   |v| / 16   half a unit in the last place of 4 significant bits;
//   m / 2^17   half of the smallest E4M3, 2^-9, since m is more than 232 times the scale: with half
//              of the scale, more than 464 would be left, which does not round to 448 any more;
//   2^-126     half of the smallest E4M3 of the smallest scale.
// A value that is not finite becomes NaN and leaves the scale to the others.
//
// No scale is so small that a result, or a sum of results, is denormal: such operands cost CPUs a
// hundred cycles, and threads may be set to take them for zero. Written without branches, for the
// compiler's vectoriser.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>

#include "transport/reduce/narrow_float.h"

namespace ztcp::reduce {

inline constexpr std::size_t kBlockElements = 32;
inline constexpr std::size_t kBlockBytes = kBlockElements + 1;

// Bytes of `count` values in blocks.
constexpr std::size_t block_bytes(std::size_t count) {
  return count + (count + kBlockElements - 1) / kBlockElements;
}
// Most values in so many bytes that end with a whole block.
constexpr std::size_t whole_blocks_in(std::size_t bytes) {
  return bytes / kBlockBytes * kBlockElements;
}

namespace block {

// As bits of a float.
inline constexpr unsigned kExponentShift = 23;
inline constexpr std::uint32_t kMagnitude = 0x7fff'ffff;
inline constexpr std::uint32_t kSign = 0x8000'0000;
// An E4M3's bits without the sign, as the first bits of a float's mantissa and the last ones of its
// exponent.
inline constexpr unsigned kCodeShift = 20;
inline constexpr std::uint32_t kNanCode = 0x7fU << kCodeShift;

inline constexpr std::int32_t kScaleBias = 127;
inline constexpr std::int32_t kLeastScale = 11;

// The byte of the smallest scale with which no value is above 464.
[[gnu::always_inline]] inline std::uint8_t scale_of(const float (&values)[kBlockElements]) {
  std::int32_t most = 0;
  for (const float value : values) {
    const auto magnitude =
        static_cast<std::int32_t>(std::bit_cast<std::uint32_t>(value) & kMagnitude);
    const std::int32_t finite =
        magnitude < static_cast<std::int32_t>(kInfinityBits) ? magnitude : 0;
    most = finite > most ? finite : most;
  }
  // 464 is 256 times 1 + 0x680000 / 2^23; a larger mantissa carries into the exponent.
  constexpr std::int32_t kCarry = 0x7f'ffff - 0x68'0000;
  const std::int32_t scale = ((most + kCarry) >> kExponentShift) - 8;
  return static_cast<std::uint8_t>(scale < kLeastScale ? kLeastScale : scale);
}

// An E4M3 of a value by its scale; only the last 8 bits of the result count. Signed integers:
// their comparisons are single instructions everywhere.
[[gnu::always_inline]] inline std::uint32_t narrow(float value, std::uint32_t scale_shift) {
  const auto bits = std::bit_cast<std::uint32_t>(value);
  const auto magnitude = static_cast<std::int32_t>(bits & kMagnitude);
  // Values of the last binade that would round to 2^128.
  constexpr std::int32_t kMost = 0x7f77'ffff;
  const std::int32_t finite = magnitude < kMost ? magnitude : kMost;
  // A denormal float comes out as too large, but below the half of the smallest E4M3.
  auto scaled = static_cast<std::int32_t>(static_cast<std::uint32_t>(finite) - scale_shift);
  scaled = scaled > 0 ? scaled : 0;
  constexpr std::int32_t kRebias = 120 << kExponentShift;
  constexpr std::int32_t kHalf = (1 << (kCodeShift - 1)) - 1;
  const std::int32_t normal =
      (scaled - kRebias + kHalf + ((scaled >> kCodeShift) & 1)) >> kCodeShift;
  // 2^14 has the unit of the smallest E4M3, 2^-9, in its last place, so the addition rounds.
  constexpr float kUnit = 16384;
  const std::int32_t denormal = std::bit_cast<std::int32_t>(std::bit_cast<float>(scaled) + kUnit) -
                                std::bit_cast<std::int32_t>(kUnit);
  constexpr std::int32_t kSmallestNormal = 121 << kExponentShift;
  const std::int32_t code = scaled < kSmallestNormal ? denormal : normal;
  const std::uint32_t nan = magnitude >= static_cast<std::int32_t>(kInfinityBits) ? ~0U : 0U;
  return static_cast<std::uint32_t>(code) | nan | ((bits & kSign) >> 24U);
}

// The powers of two by which a block's values widen.
struct Scale {
  explicit Scale(std::byte stored) {
    const auto scale = std::to_integer<std::uint32_t>(stored);
    base = (scale - 7) << kExponentShift;
    smallest_normal = std::bit_cast<float>((scale - 6) << kExponentShift);
  }
  std::uint32_t base;
  float smallest_normal;
};

[[gnu::always_inline]] inline float widen(std::byte stored, const Scale& scale) {
  const auto all = static_cast<std::uint32_t>(
      static_cast<std::int32_t>(static_cast<std::int8_t>(std::to_integer<std::uint8_t>(stored))));
  const std::uint32_t code = (all << kCodeShift) & kNanCode;
  // With a hidden one. For a denormal, 2 * wide - smallest_normal has none; for a normal, that is
  // not below `wide`. The smaller one is that with the smaller bits.
  const auto wide = std::bit_cast<float>(code + scale.base);
  const auto hidden = std::bit_cast<std::int32_t>(wide);
  const auto bare = std::bit_cast<std::int32_t>((wide + wide) - scale.smallest_normal);
  const std::int32_t magnitude = hidden < bare ? hidden : bare;
  const std::uint32_t nan = code == kNanCode ? ~0U : 0U;
  return std::bit_cast<float>(static_cast<std::uint32_t>(magnitude) | nan | (all & kSign));
}

// Writes the scale and the first `count` values.
[[gnu::always_inline]] inline void store(std::byte* to, const float (&values)[kBlockElements],
                                         std::size_t count) {
  const std::uint8_t scale = scale_of(values);
  const std::uint32_t shift = static_cast<std::uint32_t>(scale - kScaleBias) << kExponentShift;
  // Narrowed in a loop of its own, or gcc computes some of the above in bytes and takes longer.
  alignas(64) std::uint32_t codes[kBlockElements];  // NOLINT: written before it is read.
  for (std::size_t i = 0; i < kBlockElements; ++i) codes[i] = narrow(values[i], shift);
  to[0] = std::byte{scale};
#pragma GCC ivdep
  for (std::size_t i = 0; i < count; ++i) to[1 + i] = static_cast<std::byte>(codes[i]);
}

}  // namespace block
}  // namespace ztcp::reduce
