// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The single stores of ordered_copy(), and copies that need no more than these. Included only by
// its sources.
#pragma once

#include <cstddef>
#include <cstdint>
#if defined(__aarch64__)
#include <arm_neon.h>
#else
#include <immintrin.h>
#endif

namespace ztcp::ordered {

// Keeps the compiler from moving, merging or splitting stores across this point, and from replacing
// them by a memcpy. x86 needs no more: its stores become visible in program order.
inline void compiler_barrier() noexcept { asm volatile("" ::: "memory"); }

inline std::size_t misalignment(const std::byte* p, std::size_t power) noexcept {
  return reinterpret_cast<std::uintptr_t>(p) & power;
}

// Before a store that may write a flag: everything written before becomes visible first. On Arm the
// outer shareable domain includes a GPU behind PCIe.
inline void flag_barrier() noexcept {
#if defined(__aarch64__)
  asm volatile("dmb oshst" ::: "memory");
#endif
}

// True where a word of 8 bytes ends a line of 128, and with it holds the flag of LL128.
inline bool ends_line(const std::byte* to) noexcept {
  return (reinterpret_cast<std::uintptr_t>(to) & 127) == 120;
}

// One naturally aligned store of sizeof(T) bytes. A flag of LL shares its word of 8 bytes with its
// data, so that a whole word needs a barrier only for LL128's flag, and a part of a word always.
template <class T>
inline void store(std::byte*& to, const std::byte*& from) noexcept {
  T value;
  __builtin_memcpy(&value, from, sizeof value);
  if (sizeof(T) < 8 || ends_line(to)) flag_barrier();
  *reinterpret_cast<volatile T*>(to) = value;
  compiler_barrier();
  to += sizeof value;
  from += sizeof value;
}

#if defined(__aarch64__)
// Older Arm CPUs make the halves of a 16-byte store visible in any order, each of them whole.
inline void store16(std::byte*& to, const std::byte*& from) noexcept {
  if (ends_line(to + 8)) {
    store<std::uint64_t>(to, from);
    store<std::uint64_t>(to, from);
    return;
  }
  vst1q_u8(reinterpret_cast<std::uint8_t*>(to),
           vld1q_u8(reinterpret_cast<const std::uint8_t*>(from)));
  compiler_barrier();
  to += 16;
  from += 16;
}
#else
inline void store16(std::byte*& to, const std::byte*& from) noexcept {
  _mm_store_si128(reinterpret_cast<__m128i*>(to),
                  _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  compiler_barrier();
  to += 16;
  from += 16;
}
#endif

// Ascends from any address to a 16-byte boundary: each step clears the lowest set bit.
inline void align16(std::byte*& to, const std::byte*& from, std::size_t& left) noexcept {
  const std::byte* begin = to;
  if (misalignment(to, 1) != 0 && left >= 1) store<std::uint8_t>(to, from);
  if (misalignment(to, 2) != 0 && left >= static_cast<std::size_t>(to - begin) + 2)
    store<std::uint16_t>(to, from);
  if (misalignment(to, 4) != 0 && left >= static_cast<std::size_t>(to - begin) + 4)
    store<std::uint32_t>(to, from);
  if (misalignment(to, 8) != 0 && left >= static_cast<std::size_t>(to - begin) + 8)
    store<std::uint64_t>(to, from);
  left -= static_cast<std::size_t>(to - begin);
}

// The remainder after the wide stores, or a copy too short for them: `to` needs no alignment beyond
// the remaining size.
inline void finish(std::byte* to, const std::byte* from, std::size_t left) noexcept {
  for (; left >= 16; left -= 16) store16(to, from);
  if ((left & 8) != 0) store<std::uint64_t>(to, from);
  if ((left & 4) != 0) store<std::uint32_t>(to, from);
  if ((left & 2) != 0) store<std::uint16_t>(to, from);
  if ((left & 1) != 0) store<std::uint8_t>(to, from);
}

// For copies too short for an aligned wide loop.
inline void copy_short(std::byte* to, const std::byte* from, std::size_t left) noexcept {
  align16(to, from, left);
  // Where the copy ends before the boundary, the bits that are still misaligned are larger than
  // `left`, so the descending sizes below stay aligned.
  finish(to, from, left);
}

}  // namespace ztcp::ordered
