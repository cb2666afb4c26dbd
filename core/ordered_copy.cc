// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/ordered_copy.h"

#include <cstdint>
#include <immintrin.h>

namespace ztcp {
namespace {

// Keeps the compiler from moving, merging or splitting stores across this point, and from replacing
// them by a memcpy. The processor needs no barrier: x86 stores become visible in program order.
inline void store_barrier() noexcept { asm volatile("" ::: "memory"); }

// One naturally aligned store of sizeof(T) bytes.
template <class T>
inline void store(std::byte*& to, const std::byte*& from) noexcept {
  T value;
  __builtin_memcpy(&value, from, sizeof value);
  *reinterpret_cast<volatile T*>(to) = value;
  store_barrier();
  to += sizeof value;
  from += sizeof value;
}

inline void store16(std::byte*& to, const std::byte*& from) noexcept {
  _mm_store_si128(reinterpret_cast<__m128i*>(to),
                  _mm_loadu_si128(reinterpret_cast<const __m128i*>(from)));
  store_barrier();
  to += 16;
  from += 16;
}

inline std::size_t misalignment(const std::byte* p, std::size_t power) noexcept {
  return reinterpret_cast<std::uintptr_t>(p) & power;
}

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

// A store must load its line into the cache first, and received bytes may lie in another core's
// cache. Intel's cores copy faster between cold buffers when both are fetched early, AMD's copy
// slower (bench/results/copy.md). A prefetch beyond the end does no harm, and in a run of short
// frames it fetches the destination of the next one.
constexpr std::size_t kLongBytes = 1024;
inline void fetch_ahead(const std::byte* to, const std::byte* from) noexcept {
  constexpr std::size_t kAheadBytes = 1024;
  __builtin_prefetch(from + kAheadBytes);
  __builtin_prefetch(from + kAheadBytes + 64);
  __builtin_prefetch(to + kAheadBytes);
  __builtin_prefetch(to + kAheadBytes + 64);
}

void copy_sse2(std::byte* to, const std::byte* from, std::size_t left) noexcept {
  align16(to, from, left);
  for (; left >= 64; left -= 64) {
    const auto* in = reinterpret_cast<const __m128i*>(from);
    auto* out = reinterpret_cast<__m128i*>(to);
    const __m128i a = _mm_loadu_si128(in);
    const __m128i b = _mm_loadu_si128(in + 1);
    const __m128i c = _mm_loadu_si128(in + 2);
    const __m128i d = _mm_loadu_si128(in + 3);
    _mm_store_si128(out, a);
    store_barrier();
    _mm_store_si128(out + 1, b);
    store_barrier();
    _mm_store_si128(out + 2, c);
    store_barrier();
    _mm_store_si128(out + 3, d);
    store_barrier();
    to += 64;
    from += 64;
  }
  finish(to, from, left);
}

__attribute__((target("avx2"))) void copy_avx2(std::byte* to, const std::byte* from,
                                               std::size_t left) noexcept {
  align16(to, from, left);
  if (misalignment(to, 16) != 0) {
    store16(to, from);
    left -= 16;
  }
  const bool is_helped = left >= kLongBytes && __builtin_cpu_is("intel");
  for (; left >= 128; left -= 128) {
    if (is_helped) fetch_ahead(to, from);
    const auto* in = reinterpret_cast<const __m256i*>(from);
    auto* out = reinterpret_cast<__m256i*>(to);
    const __m256i a = _mm256_loadu_si256(in);
    const __m256i b = _mm256_loadu_si256(in + 1);
    const __m256i c = _mm256_loadu_si256(in + 2);
    const __m256i d = _mm256_loadu_si256(in + 3);
    _mm256_store_si256(out, a);
    store_barrier();
    _mm256_store_si256(out + 1, b);
    store_barrier();
    _mm256_store_si256(out + 2, c);
    store_barrier();
    _mm256_store_si256(out + 3, d);
    store_barrier();
    to += 128;
    from += 128;
  }
  finish(to, from, left);
}

}  // namespace

void ordered_copy(std::byte* to, const std::byte* from, std::size_t size_bytes) noexcept {
  constexpr std::size_t kWideBytes = 192;
  if (size_bytes < kWideBytes) return copy_short(to, from, size_bytes);
  if (__builtin_cpu_supports("avx2")) return copy_avx2(to, from, size_bytes);
  return copy_sse2(to, from, size_bytes);
}

}  // namespace ztcp
