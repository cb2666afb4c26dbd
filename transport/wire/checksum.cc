// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/wire/checksum.h"

#include <cstring>
#if defined(__aarch64__)
#include <arm_neon.h>
#else
#include <immintrin.h>
#endif

namespace ztcp::wire::detail {
namespace {

std::uint64_t load_tail(const std::byte* p, std::size_t n) noexcept {
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < n; ++i)
    word |= std::uint64_t{std::to_integer<std::uint8_t>(p[i])} << (8 * i);
  return word;
}

// Work of a vector kernel beside its sum.
enum class Also : bool { kNothing, kCopy };

// The rest after the vectors: fewer than a hundred bytes, or a whole header.
std::uint64_t sum_scalar(const std::byte* p, std::size_t n, std::uint64_t sum) noexcept {
  for (; n >= 8; p += 8, n -= 8) {
    std::uint64_t word = 0;
    std::memcpy(&word, p, 8);
    sum = add_carry(sum, word);
  }
  return add_carry(sum, load_tail(p, n));
}

#if defined(__aarch64__)

// Each 64-bit lane sums pairs of 32-bit words, exactly: sums of those fold to sums of 16-bit words.
template <Also also>
std::uint64_t sum_neon(const std::byte* p, std::size_t n, std::byte* to) noexcept {
  uint64x2_t sum0 = vdupq_n_u64(0);
  uint64x2_t sum1 = sum0;
  uint64x2_t sum2 = sum0;
  uint64x2_t sum3 = sum0;
  const auto load = [&](std::size_t at) {
    const uint8x16_t bytes = vld1q_u8(reinterpret_cast<const std::uint8_t*>(p + at));
    if constexpr (also == Also::kCopy) vst1q_u8(reinterpret_cast<std::uint8_t*>(to + at), bytes);
    return vreinterpretq_u32_u8(bytes);
  };
  std::size_t done = 0;
  for (; done + 64 <= n; done += 64) {
    sum0 = vpadalq_u32(sum0, load(done));
    sum1 = vpadalq_u32(sum1, load(done + 16));
    sum2 = vpadalq_u32(sum2, load(done + 32));
    sum3 = vpadalq_u32(sum3, load(done + 48));
  }
  const uint64x2_t sum = vaddq_u64(vaddq_u64(sum0, sum1), vaddq_u64(sum2, sum3));
  const std::uint64_t words = add_carry(vgetq_lane_u64(sum, 0), vgetq_lane_u64(sum, 1));
  if constexpr (also == Also::kCopy) std::memcpy(to + done, p + done, n - done);
  return sum_scalar(p + done, n - done, words);
}

#else

// How the vector kernels add. A 64-bit lane holds two 32-bit words of data, hi and lo. `all` sums
// the lanes as they are, modulo 2^64; `high` sums hi alone, exactly. Then sum(lo) is all - (high <<
// 32), exact too while it is below 2^64: three operations per vector, no carries and no blocking.
// Sums of 32-bit words fold to sums of 16-bit words.
std::uint64_t join(std::uint64_t all, std::uint64_t high) noexcept {
  const std::uint64_t low = all - (high << 32);
  return add_carry(low, high);
}

template <Also also>
__attribute__((target("avx2"))) std::uint64_t sum_avx2(const std::byte* p, std::size_t n,
                                                       std::byte* to) noexcept {
  __m256i all0 = _mm256_setzero_si256();
  __m256i all1 = all0;
  __m256i high0 = all0;
  __m256i high1 = all0;
  std::size_t done = 0;
  for (; done + 128 <= n; done += 128) {
    const auto* v = reinterpret_cast<const __m256i*>(p + done);
    const __m256i a = _mm256_loadu_si256(v);
    const __m256i b = _mm256_loadu_si256(v + 1);
    const __m256i c = _mm256_loadu_si256(v + 2);
    const __m256i d = _mm256_loadu_si256(v + 3);
    if constexpr (also == Also::kCopy) {
      auto* const w = reinterpret_cast<__m256i*>(to + done);
      _mm256_storeu_si256(w, a);
      _mm256_storeu_si256(w + 1, b);
      _mm256_storeu_si256(w + 2, c);
      _mm256_storeu_si256(w + 3, d);
    }
    all0 = _mm256_add_epi64(all0, a);
    high0 = _mm256_add_epi64(high0, _mm256_srli_epi64(a, 32));
    all1 = _mm256_add_epi64(all1, b);
    high1 = _mm256_add_epi64(high1, _mm256_srli_epi64(b, 32));
    all0 = _mm256_add_epi64(all0, c);
    high0 = _mm256_add_epi64(high0, _mm256_srli_epi64(c, 32));
    all1 = _mm256_add_epi64(all1, d);
    high1 = _mm256_add_epi64(high1, _mm256_srli_epi64(d, 32));
  }
  alignas(32) std::uint64_t all[4];
  alignas(32) std::uint64_t high[4];
  _mm256_store_si256(reinterpret_cast<__m256i*>(all), _mm256_add_epi64(all0, all1));
  _mm256_store_si256(reinterpret_cast<__m256i*>(high), _mm256_add_epi64(high0, high1));
  std::uint64_t sum = 0;
  for (int lane = 0; lane < 4; ++lane) sum = add_carry(sum, join(all[lane], high[lane]));
  if constexpr (also == Also::kCopy) std::memcpy(to + done, p + done, n - done);
  return sum_scalar(p + done, n - done, sum);
}

template <Also also>
std::uint64_t sum_sse2(const std::byte* p, std::size_t n, std::byte* to) noexcept {
  __m128i all0 = _mm_setzero_si128();
  __m128i all1 = all0;
  __m128i high0 = all0;
  __m128i high1 = all0;
  std::size_t done = 0;
  for (; done + 32 <= n; done += 32) {
    const auto* v = reinterpret_cast<const __m128i*>(p + done);
    const __m128i a = _mm_loadu_si128(v);
    const __m128i b = _mm_loadu_si128(v + 1);
    if constexpr (also == Also::kCopy) {
      auto* const w = reinterpret_cast<__m128i*>(to + done);
      _mm_storeu_si128(w, a);
      _mm_storeu_si128(w + 1, b);
    }
    all0 = _mm_add_epi64(all0, a);
    high0 = _mm_add_epi64(high0, _mm_srli_epi64(a, 32));
    all1 = _mm_add_epi64(all1, b);
    high1 = _mm_add_epi64(high1, _mm_srli_epi64(b, 32));
  }
  alignas(16) std::uint64_t all[2];
  alignas(16) std::uint64_t high[2];
  _mm_store_si128(reinterpret_cast<__m128i*>(all), _mm_add_epi64(all0, all1));
  _mm_store_si128(reinterpret_cast<__m128i*>(high), _mm_add_epi64(high0, high1));
  const std::uint64_t sum = add_carry(join(all[0], high[0]), join(all[1], high[1]));
  if constexpr (also == Also::kCopy) std::memcpy(to + done, p + done, n - done);
  return sum_scalar(p + done, n - done, sum);
}

#endif

template <Also also>
std::uint64_t sum(const std::byte* p, std::size_t n, std::byte* to) noexcept {
#if defined(__aarch64__)
  return sum_neon<also>(p, n, to);
#else
  // A load, a test and a predicted branch; ifunc resolvers conflict with the sanitizers.
  if (n >= 128 && __builtin_cpu_supports("avx2")) return sum_avx2<also>(p, n, to);
  return sum_sse2<also>(p, n, to);
#endif
}

}  // namespace

std::uint64_t sum_words(const std::byte* data, std::size_t size_bytes) noexcept {
  return sum<Also::kNothing>(data, size_bytes, nullptr);
}

std::uint64_t copy_words(std::byte* to, const std::byte* data, std::size_t size_bytes) noexcept {
  return sum<Also::kCopy>(data, size_bytes, to);
}

}  // namespace ztcp::wire::detail
