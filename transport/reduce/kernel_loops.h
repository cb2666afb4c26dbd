// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
//
// The loops of the reductions, inlined into one function for each instruction set (kernels.cc).
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <type_traits>

#include "transport/reduce/element.h"
#include "transport/reduce/narrow_float.h"

namespace ztcp::reduce {

// How elements are stored, and as which type they are computed with.
template <class T>
struct AsIs {
  using Stored = T;
  using Value = T;
  static constexpr Value load(Stored stored) { return stored; }
  static constexpr Stored store(Value value) { return value; }
};
struct AsFloat16 {
  using Stored = std::uint16_t;
  using Value = float;
  static constexpr Value load(Stored stored) { return widen_float16(stored); }
  static constexpr Stored store(Value value) { return narrow_float16(value); }
};
struct AsBfloat16 {
  using Stored = std::uint16_t;
  using Value = float;
  static constexpr Value load(Stored stored) { return widen_bfloat16(stored); }
  static constexpr Stored store(Value value) { return narrow_bfloat16(value); }
};

// Integers wrap around, as on GPUs.
template <class T, class Work>
constexpr T wrapping(T a, T b, Work work) {
  if constexpr (std::is_integral_v<T>) {
    using Unsigned = std::make_unsigned_t<T>;
    return static_cast<T>(work(static_cast<Unsigned>(a), static_cast<Unsigned>(b)));
  } else {
    return work(a, b);
  }
}
struct Sum {
  template <class T>
  static constexpr T of(T a, T b) {
    return wrapping(a, b, [](auto x, auto y) { return x + y; });
  }
};
struct Product {
  template <class T>
  static constexpr T of(T a, T b) {
    return wrapping(a, b, [](auto x, auto y) { return x * y; });
  }
};
// A NaN gives way to a number, as in fmax() and fmin().
struct Max {
  template <class T>
  static constexpr T of(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) return a > b || b != b ? a : b;
    return a > b ? a : b;
  }
};
struct Min {
  template <class T>
  static constexpr T of(T a, T b) {
    if constexpr (std::is_floating_point_v<T>) return a < b || b != b ? a : b;
    return a < b ? a : b;
  }
};

// Computed in blocks on the stack: the compiler then needs no check whether `to` is one of the
// sources, and 16-bit floats are rounded once, after the last source.
inline constexpr std::size_t kBlock = 512;

template <class In, class Block>
[[gnu::always_inline]] inline void load_block(Block& block, const std::byte* from,
                                              std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    typename In::Stored stored;
    std::memcpy(&stored, from + i * sizeof stored, sizeof stored);
    block[i] = In::load(stored);
  }
}

template <class In, class Op, class Block>
[[gnu::always_inline]] inline void combine_block(Block& block, const std::byte* from,
                                                 std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    typename In::Stored stored;
    std::memcpy(&stored, from + i * sizeof stored, sizeof stored);
    block[i] = Op::of(block[i], In::load(stored));
  }
}

template <class Out, class Block>
[[gnu::always_inline]] inline void store_block(std::byte* to, const Block& block,
                                               std::size_t count) {
  for (std::size_t i = 0; i < count; ++i) {
    const typename Out::Stored stored = Out::store(block[i]);
    std::memcpy(to + i * sizeof stored, &stored, sizeof stored);
  }
}

template <class In, class Out, class Op>
[[gnu::always_inline]] inline void reduce_block(std::byte* to, const std::byte* const* from,
                                                std::size_t sources, std::size_t begin,
                                                std::size_t count) {
  static_assert(std::is_same_v<typename In::Value, typename Out::Value>);
  alignas(64) typename In::Value block[kBlock];  // NOLINT: written before it is read.
  constexpr std::size_t kIn = sizeof(typename In::Stored);
  load_block<In>(block, from[0] + begin * kIn, count);
  for (std::size_t source = 1; source < sources; ++source)
    combine_block<In, Op>(block, from[source] + begin * kIn, count);
  store_block<Out>(to + begin * sizeof(typename Out::Stored), block, count);
}

template <class T>
[[gnu::always_inline]] inline T load_at(const std::byte* from, std::size_t i) {
  T stored;
  std::memcpy(&stored, from + i * sizeof stored, sizeof stored);
  return stored;
}

// One or two sources need no block: an element of `to` is written after those of the same number
// were read, also where `to` is a source, so no iteration depends on another.
template <class In, class Out>
[[gnu::always_inline]] inline void convert(std::byte* to, const std::byte* from, Range range) {
  const std::size_t end = range.begin + range.count;
#pragma GCC ivdep
  for (std::size_t i = range.begin; i < end; ++i) {
    const auto stored = Out::store(In::load(load_at<typename In::Stored>(from, i)));
    std::memcpy(to + i * sizeof stored, &stored, sizeof stored);
  }
}

template <class In, class Out, class Op>
[[gnu::always_inline]] inline void combine_two(std::byte* to, const std::byte* a,
                                               const std::byte* b, Range range) {
  const std::size_t end = range.begin + range.count;
#pragma GCC ivdep
  for (std::size_t i = range.begin; i < end; ++i) {
    const typename Out::Stored stored =
        Out::store(Op::of(In::load(load_at<typename In::Stored>(a, i)),
                          In::load(load_at<typename In::Stored>(b, i))));
    std::memcpy(to + i * sizeof stored, &stored, sizeof stored);
  }
}

template <class In, class Out, class Op>
[[gnu::always_inline]] inline void reduce_all(std::byte* to, const std::byte* const* from,
                                              std::size_t sources, Range range) {
  if (sources == 1) return convert<In, Out>(to, from[0], range);
  if (sources == 2) return combine_two<In, Out, Op>(to, from[0], from[1], range);
  const std::size_t end = range.begin + range.count;
  std::size_t begin = range.begin;
  // With a constant count the compiler's loops need no remainder.
  for (; end - begin >= kBlock; begin += kBlock)
    reduce_block<In, Out, Op>(to, from, sources, begin, kBlock);
  if (begin != end) reduce_block<In, Out, Op>(to, from, sources, begin, end - begin);
}

}  // namespace ztcp::reduce
