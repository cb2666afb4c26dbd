// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include <array>

#include "core/ordered_copy.h"
#include "core/ordered_store.h"

namespace ztcp {
namespace ordered {
namespace {

// A line whose last word becomes visible after the others, whatever order those come in.
inline void store_line(std::byte* to, const std::byte* from) noexcept {
  const auto* in = reinterpret_cast<const std::uint8_t*>(from);
  auto* out = reinterpret_cast<std::uint8_t*>(to);
  std::array<uint8x16_t, 7> wide;
  for (std::size_t i = 0; i < wide.size(); ++i) wide[i] = vld1q_u8(in + 16 * i);
  const uint8x8_t last_data = vld1_u8(in + 112);
  const uint8x8_t flag = vld1_u8(in + 120);
  for (std::size_t i = 0; i < wide.size(); ++i) vst1q_u8(out + 16 * i, wide[i]);
  vst1_u8(out + 112, last_data);
  flag_barrier();
  vst1_u8(out + 120, flag);
  compiler_barrier();
}

void copy_lines(std::byte* to, const std::byte* from, std::size_t left) noexcept {
  align16(to, from, left);
  for (; misalignment(to, 127) != 0; left -= 16) store16(to, from);
  for (; left >= 128; left -= 128) {
    store_line(to, from);
    to += 128;
    from += 128;
  }
  finish(to, from, left);
}

}  // namespace
}  // namespace ordered

void ordered_copy(std::byte* to, const std::byte* from, std::size_t size_bytes) noexcept {
  // Enough for a whole line after the steps up to its boundary.
  constexpr std::size_t kWideBytes = 256;
  if (size_bytes < kWideBytes) return ordered::copy_short(to, from, size_bytes);
  return ordered::copy_lines(to, from, size_bytes);
}

}  // namespace ztcp
