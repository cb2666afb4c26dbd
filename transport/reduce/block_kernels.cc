// SPDX-License-Identifier: Apache-2.0
// Copyright the ztcp authors
#include "transport/reduce/block_kernels.h"

#include <algorithm>
#include <cstddef>

#include "transport/reduce/block_float.h"
#include "transport/reduce/kernel_loops.h"
#include "transport/reduce/vector_targets.h"

namespace ztcp::reduce {
namespace {

// A block of any length, once for all instruction sets: it is the last of its vector.
template <class Block>
[[gnu::noinline]] void run_last(std::byte* to, const std::byte* const* from, std::size_t sources,
                                Range range) {
  Block::run(to, from, sources, range.begin, range.count);
}

// Block::run() for each block of the range. Whole blocks have a constant count, so the compiler's
// loops need no remainder.
template <class Block>
struct EachBlock {
  [[gnu::always_inline]] static void run(std::byte* to, const std::byte* const* from,
                                         std::size_t sources, Range range) {
    const std::size_t end = range.begin + range.count;
    std::size_t begin = range.begin;
    for (; end - begin >= kBlockElements; begin += kBlockElements)
      Block::run(to, from, sources, begin, kBlockElements);
    if (begin != end) run_last<Block>(to, from, sources, {begin, end - begin});
  }
};

using BlockValues = float[kBlockElements];

constexpr std::size_t offset_of_block(std::size_t begin) {
  return begin / kBlockElements * kBlockBytes;
}

// Values behind the last of a shorter block are 0, which leaves its scale alone.
[[gnu::always_inline]] inline void clear_rest(BlockValues& values, std::size_t count) {
  for (std::size_t i = count; i < kBlockElements; ++i) values[i] = 0;
}

[[gnu::always_inline]] inline void load_sum(BlockValues& sum, const std::byte* const* from,
                                            std::size_t sources, std::size_t begin,
                                            std::size_t count) {
  const std::size_t offset = offset_of_block(begin);
  const std::byte* stored = from[0] + offset;
  const block::Scale first(stored[0]);
  for (std::size_t i = 0; i < count; ++i) sum[i] = block::widen(stored[1 + i], first);
  for (std::size_t source = 1; source < sources; ++source) {
    asm volatile("");  // Else gcc joins the loops of two sources and does not vectorise the result.
    stored = from[source] + offset;
    const block::Scale scale(stored[0]);
    for (std::size_t i = 0; i < count; ++i) sum[i] += block::widen(stored[1 + i], scale);
  }
}

template <class In>
struct NarrowBlock {
  [[gnu::always_inline]] static void run(std::byte* to, const std::byte* const* from,
                                         std::size_t /*sources*/, std::size_t begin,
                                         std::size_t count) {
    alignas(64) BlockValues values;  // NOLINT: written before it is read; likewise below.
    load_block<In>(values, from[0] + begin * sizeof(typename In::Stored), count);
    clear_rest(values, count);
    block::store(to + offset_of_block(begin), values, count);
  }
};

template <class Out>
struct SumBlock {
  [[gnu::always_inline]] static void run(std::byte* to, const std::byte* const* from,
                                         std::size_t sources, std::size_t begin,
                                         std::size_t count) {
    alignas(64) BlockValues sum;  // NOLINT
    load_sum(sum, from, sources, begin, count);
    store_block<Out>(to + begin * sizeof(typename Out::Stored), sum, count);
  }
};

struct SumLastBlock {
  static void run(std::byte* to, const std::byte* const* from, std::size_t sources,
                  std::size_t begin, std::size_t count) {
    BlockValues sum;  // NOLINT
    load_sum(sum, from, sources, begin, count);
    clear_rest(sum, count);
    block::store(to + offset_of_block(begin), sum, count);
  }
};

// Sums several blocks before it rounds the first: gcc may take narrower vectors for sums, and a CPU
// waits for the end of a store that a load needs parts of.
struct SumAsBlocks {
  [[gnu::always_inline]] static void run(std::byte* to, const std::byte* const* from,
                                         std::size_t sources, Range range) {
    constexpr std::size_t kBlocks = 16;
    const std::size_t end = range.begin + range.count;
    std::size_t begin = range.begin;
    while (end - begin >= kBlockElements) {
      const std::size_t blocks = std::min((end - begin) / kBlockElements, kBlocks);
      alignas(64) BlockValues sums[kBlocks];  // NOLINT
      for (std::size_t i = 0; i < blocks; ++i)
        load_sum(sums[i], from, sources, begin + i * kBlockElements, kBlockElements);
      for (std::size_t i = 0; i < blocks; ++i)
        block::store(to + offset_of_block(begin + i * kBlockElements), sums[i], kBlockElements);
      begin += blocks * kBlockElements;
    }
    if (begin != end) run_last<SumLastBlock>(to, from, sources, {begin, end - begin});
  }
};

template <template <class> class Block>
Kernel kernel_of_type(ElementType type, Vectors vectors) {
  switch (type) {
    case ElementType::kFloat32:
      return kernel_for<EachBlock<Block<AsIs<float>>>>(vectors);
    case ElementType::kFloat16:
      return kernel_for<EachBlock<Block<AsFloat16>>>(vectors);
    case ElementType::kBfloat16:
      return kernel_for<EachBlock<Block<AsBfloat16>>>(vectors);
    default:
      return nullptr;
  }
}

}  // namespace

Kernel block_kernel(BlockWork work, ElementType type, Vectors vectors) {
  switch (work) {
    case BlockWork::kNarrow:
      return kernel_of_type<NarrowBlock>(type, vectors);
    case BlockWork::kSum:
      return kernel_of_type<SumBlock>(type, vectors);
    case BlockWork::kSumAsBlocks:
      return kernel_for<SumAsBlocks>(vectors);
  }
  return nullptr;
}

void narrow_to_blocks(ElementType type, std::byte* to, const std::byte* from, Range range) {
  block_kernel(BlockWork::kNarrow, type, widest())(to, &from, 1, range);
}

void sum_of_blocks(ElementType type, std::byte* to, std::span<const std::byte* const> from,
                   Range range) {
  block_kernel(BlockWork::kSum, type, widest())(to, from.data(), from.size(), range);
}

void sum_blocks(std::byte* to, std::span<const std::byte* const> from, Range range) {
  block_kernel(BlockWork::kSumAsBlocks, ElementType::kFloat32, widest())(to, from.data(),
                                                                         from.size(), range);
}

}  // namespace ztcp::reduce
