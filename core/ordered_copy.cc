// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "core/ordered_copy.h"

#include <immintrin.h>

#include "core/ordered_store.h"

namespace ztcp {
namespace ordered {
namespace {

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
    compiler_barrier();
    _mm_store_si128(out + 1, b);
    compiler_barrier();
    _mm_store_si128(out + 2, c);
    compiler_barrier();
    _mm_store_si128(out + 3, d);
    compiler_barrier();
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
    compiler_barrier();
    _mm256_store_si256(out + 1, b);
    compiler_barrier();
    _mm256_store_si256(out + 2, c);
    compiler_barrier();
    _mm256_store_si256(out + 3, d);
    compiler_barrier();
    to += 128;
    from += 128;
  }
  finish(to, from, left);
}

}  // namespace
}  // namespace ordered

void ordered_copy(std::byte* to, const std::byte* from, std::size_t size_bytes) noexcept {
  constexpr std::size_t kWideBytes = 192;
  if (size_bytes < kWideBytes) return ordered::copy_short(to, from, size_bytes);
  if (__builtin_cpu_supports("avx2")) return ordered::copy_avx2(to, from, size_bytes);
  return ordered::copy_sse2(to, from, size_bytes);
}

}  // namespace ztcp
